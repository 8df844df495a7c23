import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestStation, type TestStation } from "../../../test/support/testing-runs.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { runAndPaths, runNamed } from "./run-named.ts";

let base = "";
beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), "caisson-named-"));
  for (const name of ["a/below", "b", "c"]) await mkdir(join(base, name), { recursive: true });
  await symlink(join(base, "a"), join(base, "link"));
});
afterAll(async () => await rm(base, { recursive: true, force: true }));

async function runIn(station: TestStation, path: string): Promise<string> {
  const { runs } = station.verbs;
  const { run } = await runs.start({ task: "do it", source: { kind: "folder", path } });
  await runs.wait(run);
  return run;
}
const named = (station: TestStation, cwd: string, name?: string) =>
  runNamed({ station: station.verbs as never, cwd: join(base, cwd) }, name);

test("defaults to this folder's newest run, never another folder's", async () => {
  await using station = await createTestStation({ script: { turns: [{ say: "Done." }] } });
  await expect(named(station, "a")).rejects.toMatchObject({ code: "not_found", message: "there are no runs yet" });
  await runIn(station, join(base, "a"));
  const inA = await runIn(station, join(base, "link"));
  const inB = await runIn(station, join(base, "b"));
  expect(await named(station, "a")).toBe(inA);
  expect(await named(station, "link")).toBe(inA);
  expect(await named(station, "b")).toBe(inB);
  expect(await named(station, "a", inB)).toBe(inB);
  const refused = named(station, "c");
  await expect(refused).rejects.toMatchObject({ code: "not_found", hint: expect.stringContaining(`${inB} (${join(base, "b")})`) });
  await expect(refused).rejects.toMatchObject({ hint: expect.stringContaining("caisson ps --all") });
});

test("defaults to a run of a parent folder, unless it was discarded", async () => {
  await using station = await createTestStation({ script: { turns: [{ say: "Done." }] } });
  const above = await runIn(station, join(base, "a"));
  expect(await named(station, "a/below")).toBe(above);
  const below = await runIn(station, join(base, "a/below"));
  expect(await named(station, "a/below")).toBe(below);
  expect(await named(station, "a")).toBe(above);
  await station.verbs.sessions.discard(below);
  expect(await named(station, "a/below")).toBe(above);
  expect(await station.verbs.runs.get(above)).toMatchObject({ folder: join(base, "a") });
  expect(await station.verbs.runs.get(below)).toMatchObject({ folder: null });
});

test("treats a word that names no run, session or sandbox as a path", async () => {
  await using station = await createTestStation({ script: { turns: [{ say: "Done." }] } });
  const run = await runIn(station, join(base, "a"));
  await station.sessions.create({ id: "named", source: { kind: "empty" }, scope: "session", cleanup: "never" });
  const sandboxes = {
    get: async (word: string) => {
      if (word !== "kept") throw new CaissonError("not_found", `there is no sandbox ${word}`);
    },
  };
  const split = (cwd: string, ...words: string[]) =>
    runAndPaths({ station: { ...station.verbs, sandboxes } as never, cwd: join(base, cwd) }, words);
  expect(await split("a", "kept", "x")).toEqual({ name: "kept", paths: ["x"], isRunNamed: true });
  expect(await split("a")).toEqual({ name: run, paths: [], isRunNamed: false });
  expect(await split("a", "calc.py", "src/")).toEqual({ name: run, paths: ["calc.py", "src"], isRunNamed: false });
  expect(await split("a/below", "x.ts", "../y.ts", "..")).toEqual({ name: run, paths: ["below/x.ts", "y.ts", "."], isRunNamed: false });
  expect(await split("link", "x.ts")).toMatchObject({ name: run, paths: ["x.ts"] });
  expect(await split("a/below", run, "x.ts")).toEqual({ name: run, paths: ["x.ts"], isRunNamed: true });
  expect(await split("b", "named", "x.ts")).toEqual({ name: "named", paths: ["x.ts"], isRunNamed: true });
  expect(await split("b", "run_aaaaaaaaaaaa")).toMatchObject({ name: "run_aaaaaaaaaaaa" });
});
