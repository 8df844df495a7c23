import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
/** Inside the package, where its own name can be imported. */
const programs = join(root, "build", `guide-programs-${process.pid}`);
let state = "";

beforeAll(() => {
  state = mkdtempSync(join(tmpdir(), "caisson-test-guides-"));
  mkdirSync(programs, { recursive: true });
});
afterAll(() => {
  rmSync(programs, { recursive: true, force: true });
  rmSync(state, { recursive: true, force: true });
});

/** The expected output of each program in the guide, in page order. */
const printed = [
  /^a\.txt\n\nexit code 0\n$/,
  /^stdout apple\npear\n/,
  /^under water\n(?:.*\n)*.*file notes\/today\.txt/,
  /^not_found /,
  /^http:\/\//,
  /^Hello\. Goodbye\. 2 steps\ntrue\n$/,
];

describe("the library guide", () => {
  const page = readFileSync(join(root, "docs/guides/library.md"), "utf8");
  const blocks = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map((match) => match[1] ?? "");

  test.each(blocks.map((block, at) => [at, block] as const))("program %i prints what the page says", (at, block) => {
    const program = join(programs, `${at}.ts`);
    writeFileSync(program, block);
    const folder = join(state, "folder");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "a.txt"), "");
    const node = join(root, "node_modules/node/bin/node");
    const { stdout, stderr, status } = spawnSync(node, ["--conditions=caisson-source", program], {
      cwd: folder,
      encoding: "utf8",
      env: { PATH: process.env.PATH, HOME: state, CAISSON_HOME: join(state, "home") },
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(printed[at] as RegExp);
  });

  test("has a program for each expectation", () => {
    expect(blocks).toHaveLength(printed.length);
  });
});
