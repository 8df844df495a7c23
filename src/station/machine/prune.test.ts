import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { createTestStation } from "../../../test/support/testing-runs.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { type StorageKind, storageKindNames } from "../../contract/machine/storage-kinds.ts";
import { resolveId } from "../names/resolve-id.ts";
import { type FileStores, type PrunedStation, type PrunedStore, pruneMachine } from "./prune.ts";
import { usageOf } from "./usage.ts";

const nothing: PrunedStore = { find: async () => [], remove: async () => false };
const noFiles = Object.fromEntries(storageKindNames.map((kind) => [kind, nothing])) as unknown as FileStores;

const script = { turns: [{ say: "Done." }] };

/** Adds fake sandboxes and snapshots to real runs and sessions. */
function withSandboxes(verbs: Pick<PrunedStation, "runs" | "sessions">, removed: string[]): PrunedStation {
  const defaults = { keep: true, labels: {}, state: "running" };
  const sandboxes = {
    list: async () => ({
      sandboxes: [
        { ...defaults, id: "sb_aaaaaaaaaaaa", name: "lives" },
        { ...defaults, id: "sb_bbbbbbbbbbbb", name: "died" },
        { ...defaults, id: "sb_cccccccccccc", state: "failed" },
        { ...defaults, id: "sb_dddddddddddd", state: "failed", labels: { run: "run_x" } },
        { ...defaults, id: "sb_eeeeeeeeeeee", state: "paused" },
      ],
      damaged: [{ id: "sb_ffffffffffff" }],
    }),
    async get(word: string) {
      if (word === "lives" || word === "sb_a") return { id: "sb_aaaaaaaaaaaa" };
      throw new CaissonError("not_found", "it does not exist");
    },
    async hold(id: string) {
      if (id === "sb_bbbbbbbbbbbb") throw new CaissonError("lost", "its guest is gone");
      return { release: async () => undefined };
    },
    remove: async (id: string) => void removed.push(id),
    snapshots: async () => ({
      snapshots: [
        { id: "sn_aaaaaaaaaaaa", name: null, bytes: 7, createdAt: "2026-01-01T00:00:00.000Z" },
        { id: "sn_bbbbbbbbbbbb", name: "base", bytes: 7, createdAt: "2026-01-01T00:00:00.000Z" },
      ],
    }),
    removeSnapshot: async () => {
      throw new CaissonError("conflict", "a sandbox is built on it");
    },
  };
  return { ...verbs, sandboxes: sandboxes as never };
}

test("prune removes only what was confirmed and is still unused", async () => {
  await using station = await createTestStation({ script });
  const removed: string[] = [];
  const { runs, sessions } = station.verbs;
  const options = { station: withSandboxes(station.verbs, removed), stateDir: dirname(station.folder), files: noFiles };
  const { run } = await runs.start({ task: "do it", source: { kind: "folder", path: station.folder } });
  await runs.wait(run);
  const { run: open } = await runs.start({ task: "later", source: { kind: "folder", path: station.folder }, detached: true });

  const recent = await pruneMachine({ olderThanMs: 3_600_000, dryRun: true }, options);
  expect(recent.things.map(({ id }) => id)).toEqual(["sb_ffffffffffff", "sb_bbbbbbbbbbbb", "sb_cccccccccccc", "sn_aaaaaaaaaaaa"]);
  const found = await pruneMachine({ olderThanMs: 0, dryRun: true }, options);
  expect(removed).toEqual([]);
  const only = found.things.map(({ id }) => id).filter((id) => id !== "sb_cccccccccccc");
  const pruned = await pruneMachine({ olderThanMs: 0, only }, options);
  expect(removed).toEqual(["sb_ffffffffffff", "sb_bbbbbbbbbbbb"]);
  // The snapshot is in use. The session and its run stay, because changes in the fake runtime are not visible from
  // outside.
  expect(pruned.things.map(({ id }) => id)).toEqual(["sb_ffffffffffff", "sb_bbbbbbbbbbbb"]);
  await sessions.discard(run);
  expect((await pruneMachine({ olderThanMs: 0, only: [run, open] }, options)).things).toMatchObject([{ kind: "run", id: run }]);
  expect((await runs.list()).runs.map((each) => each.run)).toEqual([open]);
});

test("prune removes files of the confirmed kinds and ids that are still unused", async () => {
  await using station = await createTestStation({ script });
  const removed: string[] = [];
  const files = (kind: "mirror" | "image" | "points", ids: readonly string[]) => ({
    find: async () => ids.map((id) => ({ kind, id, name: null, bytes: 5, why: "nothing uses it" })),
    remove: async (id: string) => id !== "mirrors/busy" && removed.push(`${kind} ${id}`) > 0,
  });
  const options = {
    station: withSandboxes(station.verbs, removed),
    stateDir: dirname(station.folder),
    files: {
      ...noFiles,
      mirrors: files("mirror", ["mirrors/a", "mirrors/busy"]),
      images: files("image", ["templates/image-a", "templates/image-b"]),
      points: files("points", ["points/fix"]),
    },
  };
  const only = ["mirrors/a", "mirrors/busy", "templates/image-b"];
  const found = await pruneMachine({ olderThanMs: 3_600_000, dryRun: true, only }, options);
  expect([found.things.map(({ id }) => id).sort(), found.bytes, removed]).toEqual([[...only].sort(), 15, []]);
  const pruned = await pruneMachine({ olderThanMs: 3_600_000, only }, options);
  expect([pruned.things.map(({ id }) => id), pruned.bytes]).toEqual([["templates/image-b", "mirrors/a"], 10]);
  expect(removed).toEqual(["image templates/image-b", "mirror mirrors/a"]);
  const ofKinds = async (...kinds: StorageKind[]) => (await pruneMachine({ olderThanMs: 0, dryRun: true, kinds }, options)).things;
  expect((await pruneMachine({ olderThanMs: 0, dryRun: true }, options)).things.map(({ kind }) => kind)).not.toContain("points");
  expect(await ofKinds("points")).toMatchObject([{ id: "points/fix" }]);
  expect((await ofKinds("mirrors", "points")).map(({ id }) => id)).toEqual(["points/fix", "mirrors/a", "mirrors/busy"]);
});

test("a run can be removed only after it has ended", async () => {
  await using station = await createTestStation({ script });
  const { runs } = station.verbs;
  const { run } = await runs.start({ task: "do it", name: "fix", source: { kind: "empty" }, detached: true });
  await expect(runs.remove("fix")).rejects.toMatchObject({ code: "conflict" });
  await runs.stop("fix", { by: "me" });
  await runs.remove("fix");
  await expect(runs.get(run)).rejects.toMatchObject({ code: "not_found" });
});

test("find resolves ids, prefixes and names of every kind, and rejects ambiguous ones", async () => {
  await using station = await createTestStation({ script });
  const { runs, sessions } = station.verbs;
  const things = withSandboxes(station.verbs, []);
  const { run } = await runs.start({ task: "do it", name: "fix", session: { id: "base" }, source: { kind: "empty" } });
  await runs.wait(run);
  expect(await resolveId("lives", things)).toEqual({ kind: "sandbox", id: "sb_aaaaaaaaaaaa" });
  expect(await resolveId("fix", things)).toEqual({ kind: "run", id: run });
  expect(await resolveId(run.slice(0, 10), things)).toEqual({ kind: "run", id: run });
  expect(await resolveId("sn_a", things)).toEqual({ kind: "snapshot", id: "sn_aaaaaaaaaaaa" });
  await expect(resolveId("base", things)).rejects.toMatchObject({ code: "invalid", hint: expect.stringContaining("base (session)") });
  await sessions.discard("base");
  expect(await resolveId("base", things)).toEqual({ kind: "snapshot", id: "sn_bbbbbbbbbbbb" });
  for (const word of ["nothing", "sb_zzzzzzzz", "run_zzzzzzzz", "sn_zzzzzzzz"])
    await expect(resolveId(word, things)).rejects.toMatchObject({ code: "not_found" });
});

test("usage reports disk use by kind", async () => {
  await using station = await createTestStation({ script });
  const stateDir = join(dirname(station.folder), "state");
  await mkdir(join(stateDir, "sandboxes", "sb_aaaaaaaaaaaa"), { recursive: true });
  await mkdir(join(stateDir, "mirror"), { recursive: true });
  await writeFile(join(stateDir, "mirror", "big"), Buffer.alloc(1_000_000));
  for (const name of ["image-a", "image-b", "host-a", "uses"]) await mkdir(join(stateDir, "templates", name), { recursive: true });
  await writeFile(join(stateDir, "templates", "image-a", "file"), Buffer.alloc(500_000));
  await writeFile(join(stateDir, "templates", "host-a", "file"), Buffer.alloc(200_000));
  await mkdir(join(stateDir, "images"));
  await mkdir(join(stateDir, "mirrors", "a.git"), { recursive: true });
  await mkdir(join(stateDir, "unknown"));
  const { kinds, bytes, isMinimum } = await usageOf(stateDir);
  const counts = kinds.map(({ kind, count }) => [kind, count]);
  expect(counts.slice(0, 3)).toEqual([
    ["packages", 1],
    ["images", 2],
    ["skeletons", 1],
  ]);
  expect(Object.fromEntries(counts.slice(3))).toEqual({ sandboxes: 1, mirrors: 1, other: 1 });
  expect(bytes).toBeGreaterThanOrEqual(1_000_000);
  expect(isMinimum).toBe(false);
});
