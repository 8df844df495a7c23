import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { root, useCaisson } from "./caisson-process.ts";

const { base, home, sandboxes } = useCaisson();
/** In a clone, `caisson` resolves to its sources. */
const fromSources = ["--conditions", "caisson-source"];

test("the agent example runs and leaves its project unchanged", async () => {
  const node = join(root, "node_modules", "node", "bin", "node");
  const file = join(root, "examples", "demo", "project", "price.js");
  const before = await readFile(file, "utf8");
  const { stdout } = await promisify(execFile)(node, [...fromSources, join(root, "examples", "agent.ts")], {
    cwd: base(),
    env: { ...process.env, CAISSON_HOME: home() },
  });
  expect(stdout).toMatch(/^done: The discount was subtracted/m);
  expect(await readFile(file, "utf8")).toBe(before);
  expect(sandboxes()).toEqual([]);
});

test("the library example runs and leaves the folder unchanged", async () => {
  const node = join(root, "node_modules", "node", "bin", "node");
  const { stdout } = await promisify(execFile)(node, [...fromSources, join(root, "examples", "library.ts")], {
    cwd: base(),
    env: { ...process.env, CAISSON_HOME: home() },
  });
  expect(stdout).toMatch(/^words: 8\noutcome: exit code 1 .*shadow/);
  expect(stdout).toContain("A ROOM FULL OF AIR");
  expect(await readdir(base())).toEqual([]);
  expect(sandboxes()).toEqual([]);
});

test("the network example reaches allowed paths and prints why others are denied", async () => {
  const node = join(root, "node_modules", "node", "bin", "node");
  const { stdout } = await promisify(execFile)(node, [...fromSources, join(root, "examples", "network.ts")], {
    cwd: base(),
    env: { ...process.env, CAISSON_HOME: home() },
  });
  expect(stdout.split("\n")).toEqual([
    "you asked for /public/readme",
    "denied: path_not_allowed /private/keys",
    expect.stringContaining("Denied by Caisson: GET host.caisson"),
    "you asked for /private/keys",
    "",
  ]);
  expect(sandboxes()).toEqual([]);
});
