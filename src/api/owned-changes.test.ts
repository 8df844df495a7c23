import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Client } from "../client/connect.ts";
import { codesOf, refused, useOwners } from "./testing-owners.ts";

/** The results of runs, by owner: other owners get the same answers as for missing things. */
const { base, twoOwners, endedRun } = useOwners();

test("lets only its owner ship a spec, by id, prefix and name", async () => {
  const { ada, bob, admin } = await twoOwners();
  const { spec } = await ada.specs.create({ idea: "count words", name: "words" });
  const ship = (client: Client, of: string) =>
    client.ships.start({ of, to: "https://git.invalid/team/project.git", forge: "git", withoutTests: "it has no tests" });
  await refused([ship(bob, spec), ship(bob, spec.slice(0, 9)), ship(bob, "words")]);
  // The spec is found, but is not finished.
  const found = [ship(ada, spec), ship(ada, spec.slice(0, 9)), ship(ada, "words"), ship(admin, spec), ship(admin, "words")];
  expect(await codesOf(found)).toEqual(found.map(() => "conflict"));
  const others = await bob.specs.create({ idea: "count lines", name: "words" });
  await expect(ship(bob, "words")).rejects.toMatchObject({ code: "conflict", message: expect.stringContaining(others.spec) });
  await refused([ship(ada, "nothing"), ship(ada, "spec_aaaaaaaaaaaa")]);
});

test("lets only their owner merge sessions, and use the merges", async () => {
  const { ada, bob, admin } = await twoOwners();
  const path = await mkdtemp(join(base(), "project-"));
  const createRun = async (owner: string) => await endedRun({ owner, source: { kind: "folder", path } });
  const [one, two, other] = [await createRun("ada"), await createRun("ada"), await createRun("bob")];
  await refused([
    bob.merges.start({ sessions: [one, two] }),
    bob.merges.start({ sessions: [other, one] }),
    bob.merges.start({ sessions: [one, "run_aaaaaaaaaaaa"] }),
  ]);
  expect((await admin.merges.list()).items).toEqual([]);
  const { id } = await ada.merges.start({ sessions: [one, two] });
  expect(await ada.merges.wait(id, { orPerson: true })).toMatchObject({ id, owner: "ada" });
  expect((await bob.merges.list()).items).toEqual([]);
  expect((await bob.merges.list({ owner: "ada" })).items).toEqual([]);
  expect((await admin.merges.list()).items).toMatchObject([{ id, owner: "ada" }]);
  for (const word of [id, id.slice(0, 9)])
    await refused([
      bob.merges.get(word),
      bob.merges.wait(word),
      bob.merges.resolve(word, { take: [] }),
      bob.merges.cancel(word),
      bob.merges.pause(word),
      bob.merges.resume(word),
      bob.merges.remove(word),
      bob.merges.events(word)[Symbol.asyncIterator]().next(),
    ]);
  expect(await ada.merges.get(id.slice(0, 9))).toMatchObject({ id });
});
