import { createHash } from "node:crypto";
import type { ToolOutcome } from "../../contract/run.ts";
import { canonicalJson } from "../../lib/canonical-json.ts";

/** What is kept of a tool call that has ended: little, and of a bounded size, whatever it was about. */
export interface SeenCall {
  /** The number of the event that said what came of it. */
  seq: number;
  tool: string;
  /** Of its tool and arguments, exactly. */
  signature: string;
  /** The same with everything taken out in which two calls of one kind differ: numbers, hashes, white space. */
  shape: string;
  /** Of its result, likewise. */
  result: string;
  outcome: ToolOutcome;
  /** It waited for something: a background command that still runs, a sleep. */
  isWaiting: boolean;
  /** It brought the run further: a file changed, a test does better. */
  isProgress: boolean;
  /** Nothing like its result was seen before. */
  isNew: boolean;
  /** It, or what it said, has words of the task in it. */
  isOnTask: boolean;
}

/** A call that was asked for, before its end. */
export interface AskedCall {
  tool: string;
  signature: string;
  shape: string;
  /** Whether it may change files without saying so. */
  isCommand: boolean;
  sleeps: boolean;
  isOnTask: boolean;
}

const TEXT_CHARACTERS_MAX = 4000;
const SHAPE_CHARACTERS_MAX = 240;
/** Tools whose commands may change files without an event that says so: all but those known not to. */
const HARMLESS = new Set(["read", "glob", "grep", "recall", "todo_write", "todo_read", "bash_output", "web_fetch", "request_network"]);
const SAYS_WHAT_IT_CHANGES = new Set(["write", "edit", "apply_patch"]);
/** What shells wait with. */
const SLEEPS = /(^|[\s;&|(])(sleep|wait|inotifywait)\s|--wait\b|\btail\s+-f/;

export function askedCall(name: string, args: unknown, words: ReadonlySet<string>): AskedCall {
  const text = canonicalJson(args).slice(0, TEXT_CHARACTERS_MAX);
  const command = name === "bash" ? commandOf(args) : "";
  return {
    tool: name.slice(0, 64),
    signature: digest(`${name}\0${canonicalJson(args)}`),
    shape: shapeOf(`${name} ${text}`).slice(0, SHAPE_CHARACTERS_MAX),
    isCommand: !HARMLESS.has(name) && !SAYS_WHAT_IT_CHANGES.has(name),
    sleeps: command !== "" && SLEEPS.test(command),
    isOnTask: mentions(text, words),
  };
}

/** Of what a call gave: the same for results that differ in numbers only, as two runs of one failing test do. */
export function resultOf(text: string): string {
  return digest(shapeOf(text.slice(0, TEXT_CHARACTERS_MAX)));
}

/**
 * How many tests failed and passed, as most tools that run tests say it in their last lines; null for what is not
 * that.
 */
export function testCounts(text: string): { failed: number; passed: number } | null {
  const end = text.slice(-TEXT_CHARACTERS_MAX);
  const last = (pattern: RegExp) => [...end.matchAll(pattern)].at(-1)?.[1];
  const failed = last(/(?<!\d)(\d{1,9})\s{1,9}(?:failed|failing|failures?)\b/gi) ?? last(/# fail (\d+)/g);
  const passed = last(/(?<!\d)(\d{1,9})\s{1,9}(?:passed|passing|ok)\b/gi) ?? last(/# pass (\d+)/g);
  if (failed === undefined && passed === undefined) return null;
  return { failed: Number(failed ?? 0), passed: Number(passed ?? 0) };
}

/** Words of a task by which one recognises work on it: names, paths, words that are long enough to mean something. */
export function taskWords(task: string): ReadonlySet<string> {
  const words =
    task
      .slice(0, TEXT_CHARACTERS_MAX)
      .toLowerCase()
      .match(/[\p{L}\p{N}_][\p{L}\p{N}_./-]*[\p{L}\p{N}_]/gu) ?? [];
  return new Set(words.filter((word) => word.length >= 5 && !COMMON.has(word)).slice(0, WORDS_MAX));
}

const WORDS_MAX = 60;
const COMMON = new Set(
  "about after again agent always before change changes check command create existing following function implement instead please project should source tests their there these thing things those update using where which while within without would write".split(
    " ",
  ),
);

export function mentions(text: string, words: ReadonlySet<string>): boolean {
  if (words.size === 0) return false;
  const lower = text.toLowerCase();
  for (const word of words) if (lower.includes(word)) return true;
  return false;
}

/** How much of two texts is the same, by runs of three words; 1 for the same text. */
export function similarity(one: string, other: string): number {
  if (one === other) return 1;
  const [a, b] = [shingles(one), shingles(other)];
  if (a.size === 0 || b.size === 0) return 0;
  let shared = 0;
  for (const each of a) if (b.has(each)) shared += 1;
  return shared / (a.size + b.size - shared);
}

function shingles(text: string): Set<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
  if (words.length < 3) return new Set(words);
  return new Set(words.slice(2).map((word, at) => `${words[at]} ${words[at + 1]} ${word}`));
}

/** Two calls that do nearly the same. */
export function isNear(one: Pick<SeenCall, "tool" | "shape">, other: Pick<SeenCall, "tool" | "shape">): boolean {
  return one.tool === other.tool && (one.shape === other.shape || similarity(one.shape, other.shape) >= NEAR);
}
const NEAR = 0.8;

function shapeOf(text: string): string {
  return text
    .replace(/\b[0-9a-f]{7,64}\b/gi, "#")
    .replace(/\d+/g, "#")
    .replace(/\s+/g, " ")
    .trim();
}

function commandOf(args: unknown): string {
  const { command } = (args ?? {}) as { command?: unknown };
  return typeof command === "string" ? command.slice(0, TEXT_CHARACTERS_MAX) : "";
}

const digest = (text: string) => createHash("sha256").update(text).digest("base64url").slice(0, 16);
