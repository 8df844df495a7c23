import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { relativeImportsOf } from "./tidy/rules.ts";

const root = join(import.meta.dirname, "..");
const page = readFileSync(join(root, "docs", "architecture.md"), "utf8");

interface Step {
  path: string;
  /** The file that leads here if no earlier file imports this one. */
  through: string | null;
}

/** The number of files that a reader may have to open. */
const trips: Record<string, { filesMax: number }> = {
  "… `caisson exec` runs a command": { filesMax: 20 },
  "… a program inside opens an HTTPS connection": { filesMax: 14 },
  "… a program that knows of no proxy does so": { filesMax: 14 },
};

function sectionOf(title: string, text: string): string {
  const start = text.indexOf(`### ${title}\n`);
  const end = text.slice(start + 4).search(/^##/m);
  return start === -1 ? "" : text.slice(start, end === -1 ? undefined : start + 4 + end);
}

function stepsIn(section: string): Step[] {
  return [...section.matchAll(/^\d+\. `([^`]+)`(?: \(through `([^`]+)`\))?:/gm)].map(([, path = "", through]) => ({
    path,
    through: through ?? null,
  }));
}

function imports(from: string, to: string): boolean {
  return relativeImportsOf({ path: from, text: readFileSync(join(root, from), "utf8") }).includes(to);
}

const isTypeScript = (path: string) => path.endsWith(".ts");

/** Returns what is wrong with a trip: each file must be reachable from an earlier one. */
function faultsOf(steps: readonly Step[]): string[] {
  return steps.flatMap(({ path, through }, index) => {
    if (!existsSync(join(root, path))) return [`${path} is not there`];
    const before = steps.slice(0, index).map((step) => step.path);
    if (before.includes(path)) return [`${path} is visited twice`];
    const sources = before.filter(isTypeScript);
    if (!isTypeScript(path) || sources.length === 0) return [];
    if (through === null) {
      const reached = sources.some((source) => existsSync(join(root, source)) && (imports(source, path) || imports(path, source)));
      return reached ? [] : [`nothing before ${path} imports it`];
    }
    const leads = existsSync(join(root, through)) && (imports(through, path) || imports(path, through));
    return leads ? [] : [`${through} does not lead to ${path}`];
  });
}

describe("the trips of docs/architecture.md", () => {
  test("all have a limit in this test", () => {
    const titles = [...page.matchAll(/^### (…[^\n]*)$/gm)].map(([, title]) => title);
    expect(titles).toEqual(Object.keys(trips));
  });

  test.each(Object.entries(trips))("%s", (title, { filesMax }) => {
    const section = sectionOf(title, page);
    const steps = stepsIn(section);
    expect(steps.length).toBe([...section.matchAll(/^\d+\. /gm)].length);
    expect(steps.length).toBeGreaterThan(5);
    expect(steps.length).toBeLessThanOrEqual(filesMax);
    expect(faultsOf(steps)).toEqual([]);
    for (const [, path = ""] of section.matchAll(/`((?:src|guest)\/[^`]+)`/g)) expect(existsSync(join(root, path)), path).toBe(true);
  });

  test("report a file that is missing, repeated or not reachable", () => {
    const steps = stepsIn("1. `src/main.ts`: a\n2. `src/nowhere.ts`: b\n3. `src/main.ts`: c\n4. `src/lib/quantity.ts`: d\n");
    expect(faultsOf(steps)).toEqual([
      "src/nowhere.ts is not there",
      "src/main.ts is visited twice",
      "nothing before src/lib/quantity.ts imports it",
    ]);
    expect(faultsOf(stepsIn("1. `src/main.ts`: a\n2. `src/cli/sandboxes/exec.ts` (through `src/lib/read-regular-file.ts`): b\n"))).toEqual([
      "src/lib/read-regular-file.ts does not lead to src/cli/sandboxes/exec.ts",
    ]);
  });
});
