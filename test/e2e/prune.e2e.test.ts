import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import type { MachineUsage, Pruned } from "../../src/contract/machine/machine-verbs.ts";
import { writeLayout } from "../../src/runtimes/oci/template/image-fixture.ts";
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
