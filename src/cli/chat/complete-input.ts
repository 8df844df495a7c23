import { readdir } from "node:fs/promises";
import { join, sep } from "node:path";
import { ifErrno, UNREACHABLE } from "../../lib/failures.ts";
import { realPathOrNull } from "../../lib/paths.ts";
import { visibleText } from "../terminal/plain-text.ts";
import { type EditedText, insert } from "./edit-text.ts";

/** The number of names that completion reads in one folder. */
const NAMES_MAX = 10_000;

export interface Completion {
  edited: EditedText;
  /** The possible completions, if there is more than one. */
  candidates: string[];
}

export interface CompletionSources {
  /** The host folder that the workspace shows, or null. */
  folder: string | null;
  /** Files that the agent changed or created, which may not exist in that folder. */
  changed: readonly string[];
  /** Slash commands, such as `/diff`. */
  commands: readonly string[];
}

/**
 * Completes the word before the cursor: a command name, or a workspace path after an @. Never offers names from outside
 * the workspace, not even through `..` or a link.
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
  return complete(edited, typed, await pathsFor(stripQuotes(typed), sources));
}

/** Returns the text after the last @ that begins a word: a path, or an unfinished quoted one. */
function typedPath(before: string): string | null {
  let at = before.lastIndexOf("@");
  while (at > 0 && !/\s/.test(before[at - 1] ?? "")) at = before.lastIndexOf("@", at - 1);
  if (at < 0) return null;
  const typed = before.slice(at + 1);
  const isOpen = typed.startsWith('"') && !/(?:^|[^\\])"/.test(typed.slice(1));
  return isOpen || !/[\s"]/.test(typed) ? typed : null;
}

/** Reads only escaped quotes and backslashes; other escapes stand for characters that completion cannot match. */
function stripQuotes(typed: string): string {
  return typed.startsWith('"') ? typed.slice(1).replace(/\\(["\\])/g, "$1") : typed;
}

function complete(edited: EditedText, typed: string, found: readonly string[]): Completion {
  const [only, ...others] = found;
  if (only === undefined) return { edited, candidates: [] };
  if (others.length === 0) return { edited: replaceTyped(edited, typed, isFolder(only) ? only : `${only} `), candidates: [] };
  const common = found.reduce(commonStart);
  // A name that needs quotes is completed as a whole or not at all.
  const isPlain = found.every((name) => !name.startsWith('"'));
  return { edited: isPlain ? replaceTyped(edited, typed, common) : edited, candidates: [...found] };
}

/** Folders leave their quotes open, so that the next Tab completes inside. */
function isFolder(name: string): boolean {
  return name.endsWith("/");
}

function replaceTyped({ text, cursor }: EditedText, typed: string, words: string): EditedText {
  const from = cursor - typed.length;
  return insert(words)({ text: text.slice(0, from) + text.slice(cursor), cursor: from });
}

function commonStart(a: string, b: string): string {
  let length = 0;
  const [left, right] = [[...a], [...b]];
  while (length < left.length && left[length] === right[length]) length++;
  return left.slice(0, length).join("");
}

/** Returns the paths that begin with the typed text, one level deep. Folders end with a slash. */
async function pathsFor(typed: string, { folder, changed }: CompletionSources): Promise<string[]> {
  const slash = typed.lastIndexOf("/") + 1;
  const above = typed.slice(0, slash);
  const start = typed.slice(slash);
  if (above.startsWith("/") || above.split("/").includes("..")) return [];
  const known = new Set<string>();
  for (const name of folder === null ? [] : await namesIn(folder, above)) known.add(above + name);
  for (const path of changed) if (path.startsWith(above)) known.add(above + firstStep(path.slice(above.length)));
  const matching = [...known].filter((path) => path.startsWith(above + start) && !isHidden(path.slice(slash), start));
  return matching.sort().map(quotePath);
}

/** As in a shell, names that begin with a dot are offered only after the user typed a dot. */
const isHidden = (name: string, start: string) => name.startsWith(".") && !start.startsWith(".");

function firstStep(path: string): string {
  const slash = path.indexOf("/");
  return slash < 0 ? path : path.slice(0, slash + 1);
}

async function namesIn(folder: string, above: string): Promise<string[]> {
  const top = realPathOrNull(folder);
  const inside = top === null ? null : realPathOrNull(join(top, above));
  if (top === null || inside === null) return [];
  if (inside !== top && !inside.startsWith(top === sep ? sep : top + sep)) return [];
  const entries = await ifErrno(readdir(inside, { withFileTypes: true }), UNREACHABLE, []);
  return entries.slice(0, NAMES_MAX).map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name));
}

/**
 * Quotes a path for a message. Unusual characters are escaped, so that a name can neither end early, look like another,
 * nor control a terminal. A folder's quotes stay open.
 */
function quotePath(path: string): string {
  if (visibleText(path) === path && !/[\s"\\]/u.test(path)) return path;
  return `"${visibleText(path.replaceAll("\\", "\\\\").replaceAll('"', '\\"'))}${path.endsWith("/") ? "" : '"'}`;
}
