import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { commands } from "./commands.ts";

const guide = readFileSync(join(import.meta.dirname, "..", "..", "docs", "guides", "cli.md"), "utf8");

test("the guide of the command line lists every command, in the words of its help, and none that is not there", () => {
  const listed = [...guide.matchAll(/^\| `caisson ([a-z -]+)` +\| (.*?) +\|$/gm)].map(([, path, summary]) => `${path}: ${summary}`);
  expect(listed).toEqual(commands.map(({ path, summary }) => `${path.join(" ")}: ${summary}`));
});

test("what a station's user needs most is shown there, not only listed", () => {
  const shown = guide.slice(0, guide.indexOf("## Every command"));
  const groups = ["secret set", "token create", "webhook create", "context use", "login", "queue", "prioritize", "adopt", "health"];
  for (const command of [...groups, "incident show", "stats", "audit", "artifacts", "backup", "restore", "mcp"])
    expect([command, shown.includes(`caisson ${command}`)]).toEqual([command, true]);
});
