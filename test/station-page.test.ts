import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { verbFacts } from "../src/verbs/verb-facts.ts";

/** Returns the table under "The station" in docs/architecture.md: the verbs of each group. */
function documented(): Record<string, string[]> {
  const page = readFileSync(join(import.meta.dirname, "..", "docs", "architecture.md"), "utf8");
  const [, section = ""] = page.split("\n## The station\n");
  const [table = ""] = section.split("\n## ");
  const rows = [...table.matchAll(/^\| `(\w+)`\s*\| ([^|]+?)\s*\|$/gm)];
  return Object.fromEntries(rows.map(([, group = "", verbs = ""]) => [group, verbs.split(", ").sort()]));
}

test("the architecture page names every group and verb of the station", () => {
  expect(documented()).toEqual(Object.fromEntries(Object.entries(verbFacts).map(([group, verbs]) => [group, Object.keys(verbs).sort()])));
});
