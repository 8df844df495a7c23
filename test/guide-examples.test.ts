import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..");
const pages = ["README.md", ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }).map((name) => join("docs", name))]
  .filter((name) => name.endsWith(".md"))
  .map((name) => ({ name, text: readFileSync(join(root, name), "utf8") }));

/** The commands in a page's blocks, each on one line. */
function commandsIn(text: string): string[] {
  const blocks = [...text.matchAll(/^```(?:sh|bash|text)\n(.*?)^```/gms)].map(([, block = ""]) => block);
  return blocks.flatMap((block) => block.replaceAll(/\\\n\s*/g, " ").split("\n"));
}

/** What curl calls a form unless it is told otherwise, which a station refuses. */
const sendsData = (command: string) =>
  /\bcurl\b.* (?:-d|--data|--data-raw|--data-ascii)[ =]/.test(command) || /\bcurl\b.* --data-binary ["']\{/.test(command);
const namesJson = (command: string) => /-H ["']content-type: application\/json["']| --json\b/i.test(command);

test("every example that posts JSON with curl says that it is JSON", () => {
  const examples = pages.flatMap(({ name, text }) => commandsIn(text).map((command) => ({ name, command })));
  const posting = examples.filter(({ command }) => sendsData(command));
  expect(posting.length).toBeGreaterThan(5);
  expect(posting.filter(({ command }) => !namesJson(command))).toEqual([]);
});

test("what a page takes from the installed package is in the package", () => {
  const { files } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { files: string[] };
  const taken = pages.flatMap(({ text }) => [...text.matchAll(/\$\(npm root -g\)\/caisson\/([\w./-]+)/g)].map(([, path = ""]) => path));
  expect(taken.length).toBeGreaterThan(0);
  for (const path of taken) {
    expect(existsSync(join(root, path)), path).toBe(true);
    expect(files, path).toContain(path.split("/")[0]);
  }
});

test("no page copies from a checkout what an installed package is to have", () => {
  const copied = pages.flatMap(({ name, text }) => commandsIn(text).map((command) => `${name}: ${command}`));
  expect(copied.filter((command) => /: cp packaging\//.test(command))).toEqual([]);
});
