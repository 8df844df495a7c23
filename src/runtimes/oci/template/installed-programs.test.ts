import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { hostTemplate } from "./host-template.ts";

let home = "";
beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "caisson-test-")));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));
const at = (path: string) => join(home, path);
const plant = (path: string, content: string) => {
  mkdirSync(dirname(at(path)), { recursive: true });
  writeFileSync(at(path), content, { mode: 0o755 });
};
const template = (path: string, avoid: string[] = []) => hostTemplate({ home, path: at(path), reserved: [], avoid });

test("links a program in another folder as on the host, unless the workspace has it", async () => {
  plant(".local/share/claude/versions/2", "\x7fELF…");
  mkdirSync(at(".local/bin"));
  symlinkSync("../share/claude/versions/2", at(".local/bin/claude"));
  const link = { path: at(".local/bin/claude"), target: at(".local/share/claude/versions/2") };
  expect((await template(".local/bin")).links).toContainEqual(link);
  const found = await template(".local/bin", [at(".local/share")]);
  expect(found.binds.map(({ source }) => source)).not.toContain(link.target);
  expect(found.links).not.toContainEqual(link);
});

test("compiles native packages against the headers of the Node on PATH, if any", async () => {
  const prefix = ".nvm/versions/node/v24.0.0";
  plant(`${prefix}/bin/node`, "x");
  plant(`${prefix}/include/node/common.gypi`, "{}");
  plant(".nvm/versions/node/v22.0.0/bin/node", "x");
  expect((await template(`${prefix}/bin`)).env.npm_config_nodedir).toBe(at(prefix));
  expect((await template(".nvm/versions/node/v22.0.0/bin")).env.npm_config_nodedir).toBeUndefined();
});

test("puts programs installed inside on PATH, and lets npm install for the user", async () => {
  const found = await template("");
  expect(found.env.PATH?.split(":")[0]).toBe("/home/user/.local/bin");
  expect(found.folders).toContainEqual({ path: "/home/user/.local/bin", mode: 0o755, owner: "user" });
  expect(found.files).toContainEqual({ path: "/home/user/.npmrc", mode: 0o644, content: "prefix=/home/user/.local\n" });
});
