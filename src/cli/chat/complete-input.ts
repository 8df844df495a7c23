import { readdir, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { visibleText } from "../terminal/plain-text.ts";
import { type EditedText, insert } from "./edit-text.ts";

/** Names of one folder that are looked at. */
const NAMES_MAX = 10_000;

export interface Completion {
  edited: EditedText;
  /** What it could have been, where that is more than one thing. */
  candidates: string[];
}

export interface CompletionSources {
  /** The folder of the host that the workspace shows; null: there is none. */
  folder: string | null;
  /** Files that the agent changed or made, which may not be in that folder. */
  changed: readonly string[];
  /** Such as `/diff`. */
  commands: readonly string[];
}

/**
 * Completes the word before the cursor: the name of a command, or after an @ a path of the workspace. Names from
 * outside the workspace are never offered, whatever `..` or link leads there.
 */
export async function completeInput(edited: EditedText, sources: CompletionSources): Promise<Completion> {
  const before = edited.text.slice(0, edited.cursor);
  const command = /^\/[a-z]*$/.exec(before)?.[0];
  if (command !== undefined)
    return complete(
      edited,
      command,
      sources.commands.filter((name) => name.startsWith(command)),
    );
  const typed = typedPath(before);
  if (typed === null) return { edited, candidates: [] };
  return complete(edited, typed, await pathsFor(unquoted(typed), sources));
}

/** What was typed after the last @ that begins a word: a path, or the beginning of one in quotes. */
function typedPath(before: string): string | null {
  let at = before.lastIndexOf("@");
  while (at > 0 && !/\s/.test(before[at - 1] ?? "")) at = before.lastIndexOf("@", at - 1);
  if (at < 0) return null;
  const typed = before.slice(at + 1);
  const isOpen = typed.startsWith('"') && !/(?:^|[^\\])"/.test(typed.slice(1));
  return isOpen || !/[\s"]/.test(typed) ? typed : null;
}

/** Only quotes and backslashes are read back: other escapes stand for characters that a name is not completed by. */
function unquoted(typed: string): string {
  return typed.startsWith('"') ? typed.slice(1).replace(/\\(["\\])/g, "$1") : typed;
}

function complete(edited: EditedText, typed: string, found: readonly string[]): Completion {
  const [only, ...others] = found;
  if (only === undefined) return { edited, candidates: [] };
  if (others.length === 0) return { edited: replaced(edited, typed, isFolder(only) ? only : `${only} `), candidates: [] };
  const common = found.reduce(commonStart);
  // A name that has to be quoted is taken whole or not at all.
  const isPlain = found.every((name) => !name.startsWith('"'));
  return { edited: isPlain ? replaced(edited, typed, common) : edited, candidates: [...found] };
}

/** A folder in quotes leaves them open, so that what is in it can be completed next. */
function isFolder(name: string): boolean {
  return name.endsWith("/");
}

function replaced({ text, cursor }: EditedText, typed: string, words: string): EditedText {
  const from = cursor - typed.length;
  return insert(words)({ text: text.slice(0, from) + text.slice(cursor), cursor: from });
}

function commonStart(a: string, b: string): string {
  let length = 0;
  const [left, right] = [[...a], [...b]];
  while (length < left.length && left[length] === right[length]) length++;
  return left.slice(0, length).join("");
}

/** Paths that begin with what was typed, one step deep; folders end with a slash. */
async function pathsFor(typed: string, { folder, changed }: CompletionSources): Promise<string[]> {
  const slash = typed.lastIndexOf("/") + 1;
  const above = typed.slice(0, slash);
  const start = typed.slice(slash);
  if (above.startsWith("/") || above.split("/").includes("..")) return [];
  const known = new Set<string>();
  for (const name of folder === null ? [] : await namesIn(folder, above)) known.add(above + name);
  for (const path of changed) if (path.startsWith(above)) known.add(above + firstStep(path.slice(above.length)));
  const matching = [...known].filter((path) => path.startsWith(above + start) && !isHidden(path.slice(slash), start));
  return matching.sort().map(written);
}

/** As in shells: a name that begins with a dot is offered once a dot was typed. */
const isHidden = (name: string, start: string) => name.startsWith(".") && !start.startsWith(".");

function firstStep(path: string): string {
  const slash = path.indexOf("/");
  return slash < 0 ? path : path.slice(0, slash + 1);
}

async function namesIn(folder: string, above: string): Promise<string[]> {
  try {
    const top = await realpath(folder);
    const inside = await realpath(join(top, above));
    if (inside !== top && !inside.startsWith(top === sep ? sep : top + sep)) return [];
    const entries = await readdir(inside, { withFileTypes: true });
    return entries.slice(0, NAMES_MAX).map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name));
  } catch {
    // Nothing there, or nothing for us to read: there is nothing to offer.
    return [];
  }
}

/**
 * A path as it goes into a message: as it is, or in quotes with its unusual characters written out, so that a name can
 * neither end early, look like another, nor reach a terminal. The quotes of a folder stay open.
 */
function written(path: string): string {
  if (visibleText(path) === path && !/[\s"\\]/u.test(path)) return path;
  return `"${visibleText(path.replaceAll("\\", "\\\\").replaceAll('"', '\\"'))}${path.endsWith("/") ? "" : '"'}`;
}
