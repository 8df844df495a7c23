import { describe, expect, test } from "vitest";
import type { useServer } from "../../api/testing.ts";
import { stationAt, stationAtSocket } from "../../compose/remote.ts";
import type { Station } from "../../station/station.ts";

type Server = ReturnType<typeof useServer>;

/** What a verb does, whichever way its station is reached; or why that is not tried here. */
export type VerbTests<Group extends keyof Station> = {
  [Name in Group]: { [Verb in keyof Station[Name]]: ((reached: Station) => Promise<void>) | string };
};

/** Each test with the same station: itself, by its socket, and by its address with a token. */
export function describeEachWay(
  { server, station, token, defects }: Server,
  tests: Readonly<Record<string, Readonly<Record<string, ((reached: Station) => Promise<void>) | string>>>>,
): void {
  const ways: Record<string, () => Promise<Station>> = {
    itself: async () => station(),
    "by its socket": async () => stationAtSocket(server().socketPath),
    "over HTTP": async () => stationAt({ kind: "elsewhere", url: server().status.url, context: null }, { token: await token("admin") }),
  };
  describe.each(Object.entries(ways))("a station reached %s", (_, reach) => {
    for (const [group, verbs] of Object.entries(tests)) {
      for (const [verb, tried] of Object.entries(verbs)) {
        if (typeof tried === "string") test.skip(`${group}.${verb}: ${tried}`, () => {});
        else
          test(`${group}.${verb}`, async () => {
            await using reached = await reach();
            await tried(reached);
            expect(defects).toEqual([]);
          });
      }
    }
  });
}

export async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}
