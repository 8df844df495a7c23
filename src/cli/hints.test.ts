import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { CommandDefinition } from "./command.ts";
import { commands } from "./commands.ts";

const root = join(import.meta.dirname, "../..");
const sources = globSync("src/**/*.ts", { cwd: root }).filter((path) => !/\.test\.ts$|testing[^/]*\.ts$/.test(path));

/** Options of other programs that hints mention. */
const foreign = new Set(["add-subuids", "add-subgids", "now", "sparse", "platform", "unshallow"]);
/** Options that every command has. */
const everywhere = ["help", "context", "no-station"];
const known = new Set([...everywhere, "version", ...commands.flatMap(({ options }) => options.map(({ name }) => name))]);

/** Words that only begin commands, such as `caisson sandbox`. */
const groups = new Set(commands.flatMap(({ path }) => (path.length > 1 ? [path[0]] : [])));

/** Returns the mistakes in a text that tells users what to type. */
function wrongIn(whole: string): string[] {
  const wrong: string[] = [];
  // Words after -- belong to another program.
  const text = whole.replaceAll(/ -- [^`]*/g, "");
  for (const [, name = ""] of text.matchAll(/(?<![\w-])--([a-z][a-z-]*[a-z])/g)) {
    if (!known.has(name) && !foreign.has(name)) wrong.push(`--${name} is not an option`);
  }
  // `caisson mirror: …` is a message prefix, not a command.
  for (const [, line = ""] of text.matchAll(/\bcaisson (?!\w+:)([a-z][^`\\"]*)/g)) {
    if (groups.has(line)) continue;
    const command = commandOf(line.split(" "));
    if (command === undefined) wrong.push(`caisson ${line} is not a command`);
    const own = new Set([...everywhere, ...(command?.options.map(({ name }) => name) ?? [])]);
    for (const [, name = ""] of line.matchAll(/ --([a-z][a-z-]*[a-z])/g)) {
      if (command !== undefined && !own.has(name)) wrong.push(`caisson ${command.path.join(" ")} has no --${name}`);
    }
  }
  return wrong;
}

/** Returns the command with the longest path that the words begin with. */
function commandOf(words: readonly string[]): CommandDefinition | undefined {
  const plain = words.map((word) => word.replace(/[.,;:)]+$/, ""));
  const named = commands.filter(({ path }) => path.every((part, index) => plain[index] === part));
  return named.toSorted((a, b) => b.path.length - a.path.length)[0];
}

/**
 * Returns the text of every `hint` in a source, and all text in backticks, because comments, help and messages mention
 * commands as well.
 */
function textsIn(source: string): string[] {
  const hints = [...source.matchAll(/\bhint\s*[:=](?!=)/g)].map(({ index }) => literalsFrom(source, index)).filter((text) => text !== "");
  const quoted = [...source.matchAll(/\\?`(caisson [a-z][^`\\]*)\\?`/g)].map(([, text = ""]) => text);
  return [...hints, ...quoted];
}

/** Joins all string literals of the expression that begins here. Each template placeholder becomes a word. */
function literalsFrom(source: string, start: number): string {
  let depth = 0;
  let text = "";
  for (let at = start; at < source.length; at += 1) {
    const char = source[at] as string;
    if (char === '"' || char === "'" || char === "`") {
      const literal = literalAt(source, at);
      text += `${literal.replaceAll(/\$\{[^}]*\}/g, "X")} `;
      at += literal.length + 1;
    } else if ("([{".includes(char)) depth += 1;
    else if (")]}".includes(char)) depth -= 1;
    if (depth < 0 || (depth === 0 && (char === "," || char === ";"))) break;
  }
  return text;
}

function literalAt(source: string, start: number): string {
  let end = start + 1;
  while (end < source.length && source[end] !== source[start]) end += source[end] === "\\" ? 2 : 1;
  return source.slice(start + 1, end);
}

describe("the commands in hints", () => {
  test("are checked without false positives", () => {
    expect(wrongIn("Create it with allowRoot: true (--root).")).toEqual(["--root is not an option"]);
    expect(wrongIn("`caisson sesion ls` lists them.")).toEqual(["caisson sesion ls is not a command"]);
    expect(wrongIn("caisson ps --force")).toEqual(["caisson ps has no --force"]);
    expect(wrongIn("Try `caisson exec --memory 2g -- make --jobless`, `caisson sandbox`, or usermod --add-subuids.")).toEqual([]);
    const thrown = ["throw new E(1, { hint: a ? `Use ", "{b} --one.` : 'Or --two.', details: '--three' })"].join("$");
    expect(textsIn(thrown)).toEqual(["Use X --one. Or --two. "]);
    expect(textsIn("const hint = on\n  ? '--four'\n  : other(\"--five\");")).toEqual(["--four --five "]);
  });

  test("exist, and so do their options", () => {
    const texts = sources.flatMap((path) => textsIn(readFileSync(join(root, path), "utf8")).map((text) => ({ path, text })));
    expect(texts.length).toBeGreaterThan(200);
    const wrong = texts.flatMap(({ path, text }) => wrongIn(text).map((what) => `${path}: ${what} (${text.slice(0, 120)})`));
    expect([...new Set(wrong)]).toEqual([]);
  });
});
