import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..");
const pages = ["README.md", ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }).map((name) => join("docs", name))]
  .filter((name) => name.endsWith(".md"))
  .map((name) => ({ name, text: readFileSync(join(root, name), "utf8") }));

/** Returns the commands in a page's code blocks, each on one line. */
function commandsIn(text: string): string[] {
  const blocks = [...text.matchAll(/^```(?:sh|bash|text)\n(.*?)^```/gms)].map(([, block = ""]) => block);
  return blocks.flatMap((block) => block.replaceAll(/\\\n\s*/g, " ").split("\n"));
}

/** Returns whether curl sends the command's data as a form by default, which a station rejects. */
const sendsData = (command: string) =>
  /\bcurl\b.* (?:-d|--data|--data-raw|--data-ascii)[ =]/.test(command) || /\bcurl\b.* --data-binary ["']\{/.test(command);
const namesJson = (command: string) => /-H ["']content-type: application\/json["']| --json\b/i.test(command);

test("every curl example that posts JSON sets its content type", () => {
  const examples = pages.flatMap(({ name, text }) => commandsIn(text).map((command) => ({ name, command })));
  const posting = examples.filter(({ command }) => sendsData(command));
  expect(posting.length).toBeGreaterThan(5);
  expect(posting.filter(({ command }) => !namesJson(command))).toEqual([]);
});

test("files that pages use from the installed package are in the package", () => {
  const { files } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { files: string[] };
  const paths = pages.flatMap(({ text }) => [...text.matchAll(/\$\(npm root -g\)\/caisson\/([\w./-]+)/g)].map(([, path = ""]) => path));
  expect(paths.length).toBeGreaterThan(0);
  for (const path of paths) {
    expect(existsSync(join(root, path)), path).toBe(true);
    expect(files, path).toContain(path.split("/")[0]);
  }
});

test("no page copies files from a checkout that the package contains", () => {
  const copied = pages.flatMap(({ name, text }) => commandsIn(text).map((command) => `${name}: ${command}`));
  expect(copied.filter((command) => /: cp packaging\//.test(command))).toEqual([]);
});
