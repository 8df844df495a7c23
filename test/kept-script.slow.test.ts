import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { keepCompiled } from "../scripts/keep-compiled.ts";

let base = "";
let bundle = "";
let cache = "";

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-kept-"));
  bundle = join(base, "bundle");
  cache = join(base, "cache");
  mkdirSync(bundle);
  const loader = readFileSync(join(import.meta.dirname, "..", "scripts", "kept-script.ts"), "utf8");
  put("kept-script.mjs", stripTypeScriptTypes(loader));
  put(
    "caisson.mjs",
    'import { greet, Shout as $ } from "./part.mjs"; console.log(await greet("you"), new $().text); process.exit(Number(process.argv[3]));',
  );
  put("other.mjs", "export const late = () => 'later';");
  part("hello");
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const put = (name: string, text: string) => writeFileSync(join(bundle, name), text);

function part(word: string): void {
  put("words.mjs", `export default "${word}"; export const marks = ["!"];`);
  put(
    "part.mjs",
    [
      'import word, { marks as signs } from "./words.mjs";',
      `async function greet(name) { const { late } = await import("./other.mjs"); return \`\${word} \${name} \${late()}${word}\`; }`,
      "var Loud = class { text = signs.join() + String(this === undefined); };",
      "export { greet, Loud as Shout };",
      "",
    ].join("\n"),
  );
  keepCompiled(bundle, "part");
}

async function run(args = ["exec", "0"], entry = "caisson.mjs"): Promise<string> {
  const env = { PATH: process.env.PATH, NODE_COMPILE_CACHE: cache };
  const outcome = promisify(execFile)(process.execPath, [join(bundle, entry), ...args], { env });
  return (await outcome.catch((error: { stdout: string; stderr: string }) => error)).stdout;
}

function listScripts(): { path: string; ino: number }[] {
  try {
    const folder = join(cache, `scripts-${process.version}-${process.arch}`);
    return readdirSync(folder).map((name) => ({ path: join(folder, name), ino: statSync(join(folder, name)).ino }));
  } catch {
    return [];
  }
}

describe("the cache of compiled scripts", () => {
  test("runs a module unchanged, and compiles it once", async () => {
    expect(await run()).toBe("hello you laterhello !false\n");
    const first = listScripts();
    expect(first.map(({ path }) => path)).toEqual([expect.stringMatching(/\/exec-part-[0-9a-f]{16}$/)]);
    expect(await run()).toBe("hello you laterhello !false\n");
    expect(listScripts()).toEqual(first);
  });

  test("replaces damaged, truncated and empty entries", async () => {
    await run();
    const [{ path } = { path: "" }] = listScripts();
    const good = readFileSync(path);
    const broken = Buffer.from(good).fill(0x55, good.length / 2, good.length / 2 + 64);
    for (const content of [broken, good.subarray(0, good.length / 2), Buffer.alloc(0)]) {
      writeFileSync(path, content);
      expect(await run()).toBe("hello you laterhello !false\n");
      expect(readFileSync(path)).toHaveLength(good.length);
    }
  });

  test("replaces the entry of a changed script, even of the same length", async () => {
    await run();
    const before = listScripts();
    part("howdy");
    expect(await run()).toBe("howdy you laterhowdy !false\n");
    expect(listScripts()).toHaveLength(1);
    expect(listScripts()).not.toEqual(before);
  });

  test("has entries for each command, and none for failures or other programs", async () => {
    await run(["exec", "1"]);
    await run(["no command", "0"]);
    put("program.mjs", readFileSync(join(bundle, "caisson.mjs"), "utf8"));
    expect(await run(["exec", "0"], "program.mjs")).toBe("hello you laterhello !false\n");
    expect(listScripts()).toEqual([]);
    await run(["exec", "0"]);
    await run(["ps", "0"]);
    expect(listScripts()).toHaveLength(2);
  });

  test("costs only time if its folder cannot be written", async () => {
    writeFileSync(cache, "a file");
    expect(await run()).toBe("hello you laterhello !false\n");
  });

  test("rejects an export that changes later", () => {
    put("part.mjs", "let count = 0;\nconst add = () => { count += 1; };\nexport { add, count };\n");
    expect(() => keepCompiled(bundle, "part")).toThrow("exports that may change: count");
  });
});
