import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { commands } from "./commands.ts";

const guide = readFileSync(join(import.meta.dirname, "..", "..", "docs", "guides", "cli.md"), "utf8");

test("the CLI guide lists every command with its help summary", () => {
  const listed = [...guide.matchAll(/^\| `caisson ([a-z -]+)` +\| (.*?) +\|$/gm)].map(([, path, summary]) => `${path}: ${summary}`);
  expect(listed).toEqual(commands.map(({ path, summary }) => `${path.join(" ")}: ${summary}`));
});

test("the CLI guide has examples of what a station's users need most", () => {
  const examples = guide.slice(0, guide.indexOf("## Every command"));
  const groups = ["secret set", "token create", "webhook create", "context use", "login", "queue", "prioritize", "adopt", "health"];
  for (const command of [...groups, "incident show", "stats", "audit", "artifacts", "backup", "restore", "mcp"])
    expect([command, examples.includes(`caisson ${command}`)]).toEqual([command, true]);
});
