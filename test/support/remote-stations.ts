import { describe, expect, test } from "vitest";
import { stationAt, stationAtSocket } from "../../src/compose/remote.ts";
import type { Station } from "../../src/verbs/station.ts";
import type { useServer } from "./api-station.ts";

type Server = ReturnType<typeof useServer>;

/** A test of each verb that holds however the station is reached, or the reason why it has none. */
export type VerbTests<Group extends keyof Station> = {
  [Name in Group]: { [Verb in keyof Station[Name]]: ((reached: Station) => Promise<void>) | string };
};

/** Runs each test with the same station: directly, over its socket, and at its address with a token. */
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
