import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { completeInput } from "./complete-input.ts";
import { withText } from "./edit-text.ts";
import { inlineDiff } from "./inline-diff.ts";

describe("completion", () => {
  let base = "";
  beforeAll(async () => {
    base = await mkdtemp(join(tmpdir(), "caisson-test-complete-"));
    const folder = join(base, "work");
    for (const name of ["src/deep", "src/@scope", "my notes/to do"]) await mkdir(join(folder, name), { recursive: true });
    await mkdir(join(base, "outside"));
    await writeFile(join(base, "outside", "secret"), "");
    await symlink(join(base, "outside"), join(folder, "link"));
    for (const name of [
      "sum.js",
      "sum.test.js",
      "src/a.ts",
      "src/deep/b.ts",
      ".hidden",
      "with space",
      "my notes/to do/list.md",
      "src/@scope/c.ts",
      "evil\u001b[2J\nname",
    ])
      await writeFile(join(folder, name), "");
  });
  afterAll(() => rm(base, { recursive: true }));
  const complete = async (text: string) => {
    const sources = { folder: join(base, "work"), changed: ["made/new.ts", "sum.made.js"], commands: ["/diff", "/help", "/new"] };
    const { edited, candidates } = await completeInput(withText(text), sources);
    return [edited.text, candidates];
  };

  test.each([
    ["look at @src/a", "look at @src/a.ts ", []],
    ["@sr", "@src/", []],
    ["@src/d", "@src/deep/", []],
    ["@sum", "@sum.", ["sum.js", "sum.made.js", "sum.test.js"]],
    ["@ma", "@made/", []],
    ["@made/", "@made/new.ts ", []],
    ["@src/@s", "@src/@scope/", []],
    ["@.h", "@.hidden ", []],
    ["/di", "/diff ", []],
    ["mail@sum.j", "mail@sum.j", []],
    ["say /di", "say /di", []],
    ["@nothing", "@nothing", []],
  ] as const)("completes %j to %j", async (typed, text, candidates) => {
    expect(await complete(typed)).toEqual([text, candidates]);
  });

  test("quotes and escapes unusual names, so none can control the terminal", async () => {
    expect(await complete("@with")).toEqual(['@"with space" ', []]);
    expect(await complete("@ev")).toEqual(['@"evil\\x1b[2J\\nname" ', []]);
  });

  test("leaves a folder's quotes open, so that Tab completes inside it", async () => {
    expect(await complete("see @my")).toEqual(['see @"my notes/', []]);
    expect(await complete('see @"my notes/')).toEqual(['see @"my notes/to do/', []]);
    expect(await complete('see @"my notes/to do/l')).toEqual(['see @"my notes/to do/list.md" ', []]);
    expect(await complete('see @"my notes/to do/list.md" and @sum.j')).toEqual(['see @"my notes/to do/list.md" and @sum.js ', []]);
    expect(await complete('@"../outside/')).toEqual(['@"../outside/', []]);
  });

  test.each(["@../outside/", "@link/", "@/etc/pass", "@src/../../outside/"])("offers nothing for %s", async (typed) => {
    expect(await complete(typed)).toEqual([typed, []]);
  });
});

test("an inline diff is short, and shows control characters escaped", () => {
  const renderDiff = (tool: string, args: unknown) => inlineDiff(tool, args, { columns: 40 }).map(({ text }) => text);
  expect(renderDiff("edit", { old: "same\nold\u001b[2J\nend", new: "same\nnew\nend" })).toEqual([
    "     same",
    "    -old\\x1b[2J",
    "    +new",
    "     end",
  ]);
  const long = renderDiff("write", { content: "x".repeat(200) + "\nline\n".repeat(40) });
  expect(long).toHaveLength(12);
  expect(long[0]?.length).toBeLessThan(40);
  expect(long.at(-1)).toMatch(/… \d+ more lines/);
  expect(renderDiff("bash", { command: "rm" })).toEqual([]);
  expect(renderDiff("edit", null)).toEqual([]);
});
