import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { problemOfCommand } from "../support/parsed-command.ts";

const root = join(import.meta.dirname, "..", "..");
const sources = globSync("console/src/**/*.{ts,tsx}", { cwd: root }).filter((path) => !path.includes(".test."));

/**
 * Returns the commands in a source: whole strings, and text in `code` tags or backticks. A placeholder becomes one
 * word.
 */
function commandsIn(source: string): string[] {
  const texts = [...source.matchAll(/(?:<code>|"|'|`)(caisson [a-z](?:[^`<\n]|\n)*?)(?:<\/code>|"(?=[,;)])|'(?=[,;)])|`)/g)];
  return texts.map(([, text = ""]) => text.replaceAll(/\{[^}]*\}/g, "X").replaceAll(/\s+/g, " "));
}

test("the command line accepts every command that the console shows", () => {
  const commands = sources.flatMap((path) => commandsIn(readFileSync(join(root, path), "utf8")).map((command) => ({ path, command })));
  expect(commands.length).toBeGreaterThan(10);
  const wrong = commands.flatMap(({ path, command }) => {
    const problem = problemOfCommand(command);
    return problem === null ? [] : [`${path}: ${problem}`];
  });
  expect(wrong).toEqual([]);
});
