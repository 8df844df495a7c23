import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..");
const read = (...path: string[]) => readFileSync(join(root, ...path), "utf8");

/** The verbs of an interface, in its order; those that all driven things have come last. */
function verbsOf(name: string, text: string): string[] {
  const [, head = "", body = ""] = new RegExp(`^export interface ${name}\\b(.*)\\{\\n([^]*?)\\n\\}`, "m").exec(text) ?? [];
  const own = [...body.matchAll(/^ {2}(\w+)\(/gm)].map(([, verb = ""]) => verb);
  return head.includes("extends DrivenVerbs") ? [...own, ...verbsOf("DrivenVerbs", read("src", "station", "driven", "verbs.ts"))] : own;
}

/** Each group of the station with its verbs, as the sources declare them. */
function declared(): [string, string[]][] {
  const station = read("src", "station", "station.ts");
  const files = new Map([...station.matchAll(/^import type \{ (\w+) \} from "\.\/([^"]+)";$/gm)].map(([, name, file]) => [name, file]));
  return [...station.matchAll(/^ {2}readonly (\w+): (\w+);$/gm)].map(([, group = "", name = ""]) => [
    group,
    verbsOf(name, read("src", "station", files.get(name) ?? "")),
  ]);
}

/** The table under "The station" in docs/architecture.md. */
function told(): [string, string[]][] {
  const [, section = ""] = read("docs", "architecture.md").split("\n## The station\n");
  const [table = ""] = section.split("\n## ");
  return [...table.matchAll(/^\| `(\w+)`\s*\| ([^|]+?)\s*\|$/gm)].map(([, group = "", verbs = ""]) => [group, verbs.split(", ")]);
}

test("the architecture page names every group and verb of the station", () => {
  const groups = declared();
  // Else a change of the sources' shape could leave nothing to compare.
  expect(groups.length).toBeGreaterThan(15);
  expect(groups.filter(([, verbs]) => verbs.length === 0)).toEqual([]);
  expect(Object.fromEntries(groups).merges).toEqual(expect.arrayContaining(["start", "resolve", "wait"]));
  expect(told()).toEqual(groups);
});
