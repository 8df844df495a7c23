import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import type { MachineUsage, Pruned, SnapshotUsages } from "../../src/contract/machine/machine-verbs.ts";
import { writeLayout } from "../../src/runtimes/oci/template/image-fixture.ts";
import { isThroughStation } from "../support/station-modes.ts";
import { useCaisson } from "./caisson-process.ts";

const { run, home, base } = useCaisson();
const longAgo = new Date("2026-01-01");

async function prune(...more: string[]): Promise<Pruned["things"]> {
  const { code, text, stderr } = await run(["prune", "--json", ...more]);
  expect(code, stderr).toBe(0);
  return (JSON.parse(text) as Pruned).things;
}
const templates = (prefix: string) => readdirSync(join(home(), "templates")).filter((name) => name.startsWith(prefix));
const countsOf = async () =>
  Object.fromEntries((JSON.parse((await run(["df", "--json"])).text) as MachineUsage).kinds.map(({ kind, count }) => [kind, count]));

test("removes unpacked images, but none in use or used a moment ago", async () => {
  const layout = join(base(), "layout");
  const program = readFileSync("/bin/busybox");
  const entries = [
    { name: "bin/busybox", content: program, mode: 0o755 },
    { name: "bin/true", type: "2", link: "busybox" },
  ] as const;
  writeLayout(layout, [{ tag: "latest", layers: [[...entries]] }]);
  const inImage = ["--image", layout, "--no-workspace"];
  expect(await run(["exec", ...inImage, "--", "true"])).toMatchObject({ code: 0, stderr: "" });
  const id = (await run(["sandbox", "create", ...inImage])).text.trim();
  const [image = ""] = templates("image-");
  const age = () => utimesSync(join(home(), "templates", "uses", image), longAgo, longAgo);
  age();
  expect(await prune("--dry-run")).toEqual([]);
  await run(["sandbox", "rm", id, "--yes"]);
  expect(await prune("--dry-run")).toMatchObject([{ kind: "image", id: `templates/${image}`, bytes: expect.any(Number) }]);
  expect(await countsOf()).toMatchObject({ images: 1, templates: expect.any(Number) });
  await run(["exec", ...inImage, "--", "true"]);
  expect(await prune("--yes", "--older-than", "0")).toEqual([]);
  age();
  expect(await prune("--yes")).toMatchObject([{ kind: "image", id: `templates/${image}` }]);
  expect(templates("image-")).toEqual([]);
  expect(await run(["exec", ...inImage, "--", "true"])).toMatchObject({ code: 0, stderr: "" });
  expect(templates("image-")).toEqual([image]);
});

test("removes clones without a session, and artifacts of removed runs", async () => {
  const repository = join(base(), "repository");
  mkdirSync(repository);
  const env = { PATH: process.env.PATH, HOME: base() };
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@test", ...args], { cwd: repository, env });
  git("init", "-q", "-b", "main");
  writeFileSync(join(repository, "a"), "a\n");
  git("add", ".");
  git("commit", "-qm", "one");
  const url = pathToFileURL(repository).href;
  expect(await run(["run", "--model", "scripted:demo", "--repo", url, "--session", "work", "say so"])).toMatchObject({ code: 0 });
  const [mirror = ""] = readdirSync(join(home(), "mirrors"));
  const folder = join(home(), "mirrors", mirror);
  for (const path of [join(folder, "FETCH_HEAD"), folder].filter(existsSync)) utimesSync(path, longAgo, longAgo);
  mkdirSync(join(home(), "artifacts", "run_aaaaaaaaaaaa"), { recursive: true });
  writeFileSync(join(home(), "artifacts", "run_aaaaaaaaaaaa", "report"), "x");
  expect(await countsOf()).toMatchObject({ mirrors: 1, artifacts: 1 });
  const artifacts = { kind: "artifacts", id: "artifacts/run_aaaaaaaaaaaa", why: "run_aaaaaaaaaaaa was removed" };
  expect(await prune("--yes")).toMatchObject([artifacts]);
  expect(await run(["session", "rm", "work", "--yes"])).toMatchObject({ code: 0 });
  expect(await prune("--dry-run")).toMatchObject([{ kind: "mirror", id: `mirrors/${mirror}`, name: url }]);
  expect((await run(["prune", "--yes"])).text).toMatch(/mirrors\/.* file:\/\/.*no session uses this repository[\s\S]*Removed 1 thing/);
  expect(readdirSync(join(home(), "mirrors"))).toEqual([]);
  expect(readdirSync(join(home(), "artifacts"))).toEqual([]);
});

test("removes earlier states of sessions only if they are named, and measures them", async () => {
  const folder = join(base(), "project");
  mkdirSync(folder);
  const turn = (text: string) => ({ calls: [{ tool: "write", arguments: { path: "big", content: text.repeat(200_000) } }] });
  const script = join(base(), "turns.json");
  writeFileSync(script, JSON.stringify({ turns: [turn("a"), { say: "One." }, turn("b"), { say: "Two." }] }));
  const started = await run(["run", "--model", `scripted:${script}`, "--session", "work", "--repo", folder, "write"]);
  const id = /run_[a-z0-9]+/.exec(started.text)?.[0] ?? "";
  expect(await run(["run", `--continue=${id}`, "again"])).toMatchObject({ code: 0 });
  const usage = async (...of: string[]) => JSON.parse((await run(["snapshot", "du", "--json", ...of])).text) as SnapshotUsages;
  const { usages, bytes } = await usage();
  // One for each step that changed files.
  expect(usages).toMatchObject([
    { kind: "point", session: "work", run: id, sharedBytes: 0 },
    { kind: "point", session: "work", run: id, sharedBytes: usages[0]?.ownBytes },
  ]);
  for (const { ownBytes } of usages) expect(ownBytes).toBeGreaterThanOrEqual(200_000);
  expect(bytes).toBe(usages.reduce((sum, { ownBytes }) => sum + ownBytes, 0));
  expect((await usage("work")).usages).toEqual(usages);
  expect((await run(["snapshot", "du", "no-such"])).stderr).toContain("caisson snapshot du");
  expect(await countsOf()).toMatchObject({ sessions: 1, points: 2 });
  const pointsOnly = ["points", "--older-than", "0"];
  expect((await prune("--dry-run", "--older-than", "0")).map(({ kind }) => kind)).not.toContain("points");
  expect(await prune("--dry-run", ...pointsOnly)).toMatchObject([{ kind: "points", id: "points/work", bytes }]);
  expect(await prune("--dry-run", "points")).toEqual([]);
  expect(await prune("--yes", ...pointsOnly)).toMatchObject([{ id: "points/work" }]);
  expect((await usage()).usages).toEqual([]);
  expect((await run(["undo", id])).stderr).toContain("were not stored");
  expect((await run(["diff", "work", "--stat"])).text).toContain("big");
  expect(await run(["session", "rm", "work", "--yes"])).toMatchObject({ code: 0 });
});

test("shows what snapshots take, and which of it they share", async () => {
  const { text: sandbox } = await run(["sandbox", "create", "--no-workspace"]);
  const fill = (name: string, kib: number) =>
    run(["exec", "--sandbox", sandbox.trim(), "--", "dd", "if=/dev/urandom", `of=/workspace/${name}`, "bs=1024", `count=${kib}`]);
  await fill("one", 400);
  const first = (await run(["sandbox", "snapshot", sandbox.trim(), "--name", "first"])).text.trim();
  const { text: second } = await run(["sandbox", "create", "--snapshot", "first", "--no-workspace"]);
  await run(["exec", "--sandbox", second.trim(), "--", "dd", "if=/dev/urandom", "of=/workspace/two", "bs=1024", "count=200"]);
  await run(["sandbox", "snapshot", second.trim(), "--name", "second"]);
  const { usages, bytes } = JSON.parse((await run(["snapshot", "du", "--json"])).text) as SnapshotUsages;
  const [one, two] = usages;
  expect(usages).toMatchObject([
    { id: first, name: "first", sharedBytes: 0 },
    { name: "second", kind: "snapshot" },
  ]);
  expect(one?.ownBytes).toBeGreaterThanOrEqual(400 * 1024);
  expect(two?.ownBytes).toBeGreaterThanOrEqual(200 * 1024);
  expect(two?.ownBytes).toBeLessThan(400 * 1024);
  expect(two?.sharedBytes).toBeGreaterThanOrEqual(400 * 1024);
  expect(bytes).toBeGreaterThanOrEqual(600 * 1024);
  expect((await run(["snapshot", "du", "second"])).text).toMatch(/snapshot +sn_\S+ +second/);
  expect(await run(["sandbox", "rm", "--yes", sandbox.trim(), second.trim()])).toMatchObject({ code: 0 });
  expect(await run(["snapshot", "rm", "second", "first"])).toMatchObject({ code: 0 });
});

test("removes old packages and logs by kind, and refuses an unknown kind", async () => {
  const entries = join(home(), "mirror", "entries", "ab");
  const [old, young] = [`ab${"0".repeat(62)}`, `ab${"1".repeat(62)}`];
  mkdirSync(entries, { recursive: true });
  for (const name of [old, young]) writeFileSync(join(entries, name), "x".repeat(5000));
  utimesSync(join(entries, old), longAgo, longAgo);
  for (const name of ["station.log.1", "background.log"]) {
    writeFileSync(join(home(), name), "words\n");
    utimesSync(join(home(), name), longAgo, longAgo);
  }
  expect(await countsOf()).toMatchObject({ packages: 1, logs: isThroughStation ? 3 : 2 });
  expect(await prune("packages", "--dry-run")).toMatchObject([{ kind: "packages", why: "1 package can be fetched again" }]);
  expect(await prune("packages", "--yes")).toHaveLength(1);
  expect(readdirSync(entries)).toEqual([young]);
  expect((await prune("logs", "--yes")).map(({ id }) => id).sort()).toEqual(["background.log", "station.log.1"]);
  expect([existsSync(join(home(), "station.log.1")), readFileSync(join(home(), "background.log"), "utf8")]).toEqual([false, ""]);
  const unknown = await run(["prune", "pakages", "--dry-run"]);
  expect([unknown.code, unknown.stderr]).toEqual([125, expect.stringContaining("Did you mean packages?")]);
});
