import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as breathe } from "node:timers/promises";
import { AppliedChanges, AppliedDiff, type AppliedFile } from "../contract/session/session-verbs.ts";
import { ABSENT, ifErrno, jsonOrNull } from "../lib/failures.ts";
import { replaceFile } from "../lib/replace-file.ts";
import { textOrBase64 } from "../lib/text-or-base64.ts";
import { type Change, kindOf } from "./change.ts";
import { renderEach } from "./render-diff.ts";

/** How many applies of a session or a sandbox are stored with their diffs. They are only shown, never acted on. */
const APPLIES_KEPT_MAX = 10;
const FILES_KEPT_MAX = 1_000;
/** Limit for all patches of one apply. Beyond it, files are stored without their patch. */
const PATCH_BYTES_MAX = 1024 * 1024;

const INDEX_NAME = "applies.json";
const diffName = (apply: number) => `applied-${apply}.json`;
const DIFF_NAME = /^applied-\d+\.json$/;

/** Returns the stored applies, newest first. A damaged list counts as empty. */
export async function listApplies(dir: string): Promise<AppliedChanges[]> {
  const parsed = AppliedChanges.array().safeParse(await readJson(join(dir, INDEX_NAME)));
  return parsed.success ? parsed.data.toReversed() : [];
}

/** Returns null if the diff was not stored. */
export async function readAppliedDiff(dir: string, apply: number): Promise<AppliedDiff | null> {
  const parsed = AppliedDiff.safeParse(await readJson(join(dir, diffName(apply))));
  return parsed.success ? parsed.data : null;
}

/** Stores the diff of an apply and removes the oldest one. */
export async function keepAppliedDiff(dir: string, applied: { folder: string; at: string; changes: readonly Change[] }): Promise<void> {
  const { folder, at, changes } = applied;
  const before = (await listApplies(dir)).reverse();
  const apply = (before.at(-1)?.apply ?? 0) + 1;
  const files = await renderFiles(changes.slice(0, FILES_KEPT_MAX));
  const diff: AppliedDiff = { apply, files, isWhole: changes.length === files.length && files.every(({ patch }) => patch !== null) };
  const applies = [...before, { apply, at, folder, count: changes.length, hasDiff: true }].slice(-APPLIES_KEPT_MAX);
  await replaceFile(dir, diffName(apply), JSON.stringify(diff));
  await replaceFile(dir, INDEX_NAME, JSON.stringify(applies));
  // This also removes the file of an apply that was killed before it wrote the list.
  const wanted = new Set(applies.map((each) => diffName(each.apply)));
  for (const name of await readdir(dir)) if (DIFF_NAME.test(name) && !wanted.has(name)) await rm(join(dir, name), { force: true });
}

async function renderFiles(changes: readonly Change[]): Promise<AppliedFile[]> {
  const files: AppliedFile[] = [];
  let bytes = 0;
  for (const { change, patch } of renderEach(changes, { brief: true })) {
    bytes += patch.length;
    const { path, from } = change;
    files.push({ path, from, kind: kindOf(change), ...countLines(patch), patch: bytes > PATCH_BYTES_MAX ? null : textOrBase64(patch) });
    await breathe();
  }
  return files;
}

/** Counts the lines that one file's patch adds and removes. Lines before the first hunk describe the file. */
function countLines(patch: Buffer): { linesAdded: number; linesRemoved: number } {
  const counts = { linesAdded: 0, linesRemoved: 0 };
  let isHunk = false;
  for (const line of patch.toString("latin1").split("\n")) {
    if (line.startsWith("@@")) isHunk = true;
    else if (line.startsWith("diff --git ")) isHunk = false;
    else if (isHunk && line.startsWith("+")) counts.linesAdded += 1;
    else if (isHunk && line.startsWith("-")) counts.linesRemoved += 1;
  }
  return counts;
}

async function readJson(path: string): Promise<unknown> {
  return jsonOrNull(await ifErrno(readFile(path, "utf8"), ABSENT, "null"));
}
