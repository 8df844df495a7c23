import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { gitSettings as settingsInside } from "../sandbox/git-settings.ts";
import { gitSettings, readGitIdentity } from "./git-identity.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "git-identity-"));
});
afterEach(() => rmSync(home, { recursive: true }));
const write = (path: string, text: string) => {
  mkdirSync(dirname(join(home, path)), { recursive: true });
  writeFileSync(join(home, path), text);
};
const read = (variables: Record<string, string> = {}) => readGitIdentity({ home, variables });
/** Returns the value that git itself reads for a key of the user's settings. */
const byGit = (key: string) =>
  execFileSync("git", ["config", "--global", "--includes", "--get", key], {
    encoding: "utf8",
    cwd: home,
    env: { PATH: process.env.PATH, HOME: home },
  }).replace(/\n$/, "");

describe("the user's name and email", () => {
  test.each([
    ["plain", "[user]\n\tname = Ada Lovelace\n\temail = ada@example.org\n"],
    ["quoted, with comments and escapes", '[user]\nname = "A; \\"B\\" # C"  ; a comment\nemail=a\\\\b@x.test # why\n'],
    [
      "on several lines, in several places",
      "[User]\n name = Ada \\\n Lovelace\n[core]\n editor = vi\n[user]\n email = first@x\n email = last@x\n",
    ],
    [
      "beside other sections",
      '[user "other"]\n name = no\n[credential]\n helper = store\n[USER] NAME = Yes\n email = e@x\n[alias]\n name = alias\n',
    ],
  ])("match what git reads: %s", (_, text) => {
    write(".gitconfig", text);
    expect(read()).toEqual({ name: byGit("user.name"), email: byGit("user.email") });
  });

  test("come from included files and the XDG folder, the last one winning", () => {
    write(".config/git/config", "[user]\n name = From XDG\n email = xdg@x\n");
    write(".gitconfig", "[include]\n path = more/names\n path = ~/absent\n");
    write("more/names", "[include]\n path = names\n[user]\n name = Included\n");
    expect(read()).toEqual({ name: "Included", email: "xdg@x" });
    expect(read({ GIT_CONFIG_GLOBAL: join(home, ".config/git/config") })).toEqual({ name: "From XDG", email: "xdg@x" });
  });

  test("are absent without valid settings", () => {
    expect(read()).toEqual({});
    mkdirSync(join(home, ".gitconfig"));
    expect(read()).toEqual({});
    expect([...gitSettings("\u0000[user\nname")]).toEqual([]);
  });
});

test("passes only the identity to git inside; the repository's own wins", () => {
  const file = join(home, "inside");
  writeFileSync(file, settingsInside({ name: 'A "B" \\ C\n[alias] x = !id', email: "e@x" }));
  const git = (...args: string[]) =>
    execFileSync("git", args, { encoding: "utf8", cwd: home, env: { PATH: process.env.PATH, HOME: home, GIT_CONFIG_SYSTEM: file } });
  expect(git("config", "--list", "--name-only")).not.toMatch(/^alias\.x$/m);
  expect(git("config", "user.name")).toBe('A "B" \\ C [alias] x = !id\n');
  expect(git("config", "safe.directory")).toBe("*\n");
  git("init", "-q");
  git("config", "user.name", "Mine");
  expect(git("config", "user.name")).toBe("Mine\n");
});
