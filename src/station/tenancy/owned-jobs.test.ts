import { expect, test } from "vitest";
import type { Station } from "../../verbs/station.ts";
import { jobLookups } from "./owned-jobs.ts";

const ships = ["ship_aaaaaaaaaaaa", "ship_abbbbbbbbbbb", "ship_bbbbbbbbbbbb"].map((id) => ({ id, owner: "ada" }));
/** A station whose pages hold two ships. */
const station = {
  ships: {
    get: async (word: string) => ships.find(({ id }) => id === word),
    list: async ({ id = "", owner }: { id?: string; owner?: string }) => ({
      items: ships.filter((ship) => ship.id.startsWith(id) && (owner === undefined || ship.owner === owner)).slice(0, 2),
    }),
  },
} as unknown as Station;

test("finds an owner's ship by id even if it is beyond the first page", async () => {
  const { ship } = jobLookups(station, { owner: "ada", sees: "own" });
  expect(await ship("ship_bbbbbbbbbbbb")).toBe("ship_bbbbbbbbbbbb");
  expect(await ship("ship_b")).toBe("ship_bbbbbbbbbbbb");
  await expect(ship("ship_a")).rejects.toMatchObject({ code: "invalid" });
});

test("does not find another owner's ship by id or id prefix", async () => {
  const { ship } = jobLookups(station, { owner: "bob", sees: "own" });
  for (const word of ["ship_bbbbbbbbbbbb", "ship_b"]) await expect(ship(word)).rejects.toMatchObject({ code: "not_found" });
});
