import { afterAll, beforeAll, expect, test } from "vitest";
import { globTool } from "./search.ts";
import { createWorkbench, type Workbench } from "./testing-tools.ts";

let bench: Workbench;
beforeAll(async () => {
  bench = await createWorkbench();
});
afterAll(() => bench[Symbol.asyncDispose]());
const glob = async (pattern: string, options: object = {}) => (await bench.use(globTool, { pattern, ...options })).text.split("\n").sort();

test("finds files by name anywhere below a folder, except in dependency folders", async () => {
  for (const path of ["a.ts", "src/b.ts", "src/deep/c.ts", "src/deep/c.md", "node_modules/x/d.ts", ".git/e.ts", ".github/w.yml"])
    await bench.put(path, "");
  expect(await glob("**/*.ts")).toEqual(["a.ts", "src/b.ts", "src/deep/c.ts"]);
  expect(await glob("*.ts")).toEqual(["a.ts"]);
  expect(await glob("**/*.{md,yml}")).toContain("src/deep/c.md");
  expect(await glob("*.ts", { folder: "src" })).toEqual(["src/b.ts"]);
  expect(await glob("/workspace/src/*.ts")).toEqual(["src/b.ts"]);
  expect(await glob("node_modules/**/*.ts")).toEqual(["node_modules/x/d.ts"]);
  expect(await glob("*.rs")).toEqual(["No file matches."]);
  await expect(glob("*", { folder: "nowhere" })).rejects.toMatchObject({ code: "not_found" });
});

test("shows at most 100 files, newest first", async () => {
  for (let number = 0; number < 105; number++) await bench.put(`many/${number}.txt`, "");
  const { text } = await bench.use(globTool, { pattern: "many/*.txt" });
  expect(text).toMatch(/\n\n\[5 more; narrow the pattern\]$/);
  expect(text.split("\n")).toHaveLength(102);
});
