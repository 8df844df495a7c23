import { createHash } from "node:crypto";
import { builtInTools } from "../../agent/tools/tool-set.ts";
import type { ToolOutcome } from "../../contract/run/run.ts";
import { canonicalJson } from "../../lib/canonical-json.ts";

/** The stored summary of a finished tool call. It is small, however large the call was. */
export interface SeenCall {
  /** The number of the event with its outcome. */
  seq: number;
  tool: string;
  /** The exact digest of its tool and arguments. */
  signature: string;
  /** Its tool and arguments without the parts that vary between similar calls: numbers, hashes, white space. */
  shape: string;
  /** The digest of its result without those parts. */
  result: string;
  outcome: ToolOutcome;
  /** Whether it waited for something: a background command that still runs, or a sleep. */
  isWaiting: boolean;
  /** Whether it made progress: it changed a file, or a test improved. */
  isProgress: boolean;
  /** Whether its result differs from all earlier results. */
  isNew: boolean;
  /** Whether its arguments, or the agent's last text, contain words of the task. */
  isOnTask: boolean;
}

/** A requested call that has not ended yet. */
export interface CallFingerprint {
  tool: string;
  signature: string;
  shape: string;
  /** Whether it may change files without reporting them. */
  isCommand: boolean;
  sleeps: boolean;
  isOnTask: boolean;
}

const TEXT_CHARACTERS_MAX = 4000;
const SHAPE_CHARACTERS_MAX = 240;
/** Tools that change no files, or list the files they change. All others, such as MCP tools, may change any file. */
const accountable: ReadonlySet<string> = new Set(builtInTools.filter(({ files }) => files !== "any").map(({ name }) => name));
/** The ways in which shell commands wait. */
const SLEEPS = /(^|[\s;&|(])(sleep|wait|inotifywait)\s|--wait\b|\btail\s+-f/;

export function fingerprintCall(name: string, args: unknown, words: ReadonlySet<string>): CallFingerprint {
  const text = canonicalJson(args).slice(0, TEXT_CHARACTERS_MAX);
  const command = name === "bash" ? commandOf(args) : "";
  return {
    tool: name.slice(0, 64),
    signature: digest(`${name}\0${canonicalJson(args)}`),
    shape: shapeOf(`${name} ${text}`).slice(0, SHAPE_CHARACTERS_MAX),
    isCommand: !accountable.has(name),
    sleeps: command !== "" && SLEEPS.test(command),
    isOnTask: mentions(text, words),
  };
}

/**
 * Returns a digest of a result. Results that differ only in numbers, such as those of a failing test, have the same
 * digest.
 */
export function resultOf(text: string): string {
  return digest(shapeOf(text.slice(0, TEXT_CHARACTERS_MAX)));
}

/**
 * Returns the numbers of failed and passed tests, which most test tools report in their last lines; null for other
 * output.
 */
export function testCounts(text: string): { failed: number; passed: number } | null {
  const end = text.slice(-TEXT_CHARACTERS_MAX);
  const last = (pattern: RegExp) => [...end.matchAll(pattern)].at(-1)?.[1];
  const failed = last(/(?<!\d)(\d{1,9})\s{1,9}(?:failed|failing|failures?)\b/gi) ?? last(/# fail (\d+)/g);
  const passed = last(/(?<!\d)(\d{1,9})\s{1,9}(?:passed|passing|ok)\b/gi) ?? last(/# pass (\d+)/g);
  if (failed === undefined && passed === undefined) return null;
  return { failed: Number(failed ?? 0), passed: Number(passed ?? 0) };
}

/** Returns the words by which we recognize calls that concern the task: names, paths, and words of some length. */
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

/** Returns the share of three-word sequences that two texts have in common; 1 for equal texts. */
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

/** Returns whether two calls are nearly the same. */
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
