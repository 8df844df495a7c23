import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { applyChanges } from "./apply.ts";
import type { Change } from "./change.ts";
import { heldBack, noticed, whyHeldBack, whyNoticed } from "./protected-files.ts";

let base = "";
let folder = "";
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-test-"));
  folder = join(base, "folder");
  mkdirSync(folder);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const patterns = heldBack.flatMap((group) => group.patterns);
const examplesOf = (pattern: string) => {
  const example = pattern.replaceAll("*", "x");
  return pattern.endsWith("/") ? [`${example}file`, `${example}deep/er/file`, example.slice(0, -1)] : [example];
};
const examples = patterns.flatMap(examplesOf);
const change = (path: string): Change => ({
  path,
  from: null,
  before: null,
  after: { kind: "file", mode: 0o644, content: Buffer.from("x") },
  changedOutside: false,
});
const apply = (changes: readonly Change[], more = {}) => applyChanges(changes, { folder, stateDir: join(base, "state"), ...more });

describe("files that tools outside act on", () => {
  test("are held back at any depth, in any case and at either end of a move", async () => {
    expect(patterns.length).toBeGreaterThan(250);
    for (const path of examples) {
      expect(whyHeldBack(path), path).not.toBeNull();
      expect(whyHeldBack(`a/b/${path}`), path).not.toBeNull();
      expect(whyHeldBack(path.toUpperCase()), path).not.toBeNull();
    }
    const moved = { ...change("x"), before: change("x").after, from: ".envrc" };
    const result = await apply([...new Set(examples)].map(change).concat(moved));
    expect(result.applied).toEqual([]);
    expect(readdirSync(folder)).toEqual([]);
  });

  test("are applied when they are named, or when all are requested", async () => {
    expect((await apply([change(".envrc"), change(".npmrc")], { paths: [".envrc"] })).applied).toEqual([".envrc"]);
    expect((await apply([change(".npmrc"), change(".hg/hgrc")], { includeConfiguration: true })).applied).toHaveLength(2);
  });

  test("include hooks in any folder that the user's repository configures", async () => {
    mkdirSync(join(folder, ".git"));
    const changes = ["tools/hooks/pre-commit", "tools/other"].map(change);
    for (const config of [
      "[core]\n\thooksPath = tools/hooks\n",
      '[core]\n\tHooksPath = "./tools/hooks/" ; ours\n',
      `[core]\n\thookspath=${folder}/tools/hooks\n`,
    ]) {
      writeFileSync(join(folder, ".git/config"), config);
      const { applied, skipped } = await apply(changes);
      expect([applied, skipped], config).toEqual([
        ["tools/other"],
        [{ path: "tools/hooks/pre-commit", reason: expect.stringContaining("hooks") }],
      ]);
      rmSync(join(folder, "tools"), { recursive: true });
    }
    writeFileSync(join(folder, ".git/config"), "[core]\n\tbare = false\n");
    symlinkSync("../tools/hooks", join(folder, ".git/hooks"));
    expect((await apply(changes)).applied).toEqual(["tools/other"]);
    expect((await apply(changes.slice(0, 1), { paths: ["tools/hooks/pre-commit"] })).applied).toHaveLength(1);
  });

  test("do not include files that no tool runs by itself", () => {
    for (const path of [
      "Makefile",
      "package.json",
      "src/main.ts",
      "README.md",
      "docs/agents/page.md",
      ".gitignore",
      ".editorconfig",
      "env",
      "src/env.ts",
      ".env.example",
      "model.pth",
      "Dockerfile",
      "prompt.ts",
      "src/vscode/x",
      "mise/x.ts",
      "config.toml",
      "HEAD",
      ".eslintrc.json",
      "rust/toolchain.rs",
    ])
      expect(whyHeldBack(path), path).toBeNull();
  });

  test("do not include text for agents, which is applied with a notice", async () => {
    for (const path of noticed.flatMap((group) => group.patterns)) {
      expect(whyNoticed(path)).not.toBeNull();
      expect(whyHeldBack(path)).toBeNull();
    }
    const result = await apply([change("CLAUDE.md"), change("sub/AGENTS.md"), change("x.md")]);
    expect(result.applied).toHaveLength(3);
    expect(result.told.map(({ path }) => path)).toEqual(["CLAUDE.md", "sub/AGENTS.md"]);
  });
});
