import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as breathe } from "node:timers/promises";
import { AppliedChanges, AppliedDiff, type AppliedFile } from "../contract/session-verbs.ts";
import { jsonOrNull } from "../lib/json-or-null.ts";
import { replaceFile } from "../lib/replace-file.ts";
import { textOrBase64 } from "../lib/text-or-base64.ts";
import { type Change, kindOf } from "./change.ts";
import { renderEach } from "./render-diff.ts";

/** The last applies of a session or a sandbox, each with its diff: to look at, never to act on. */
const APPLIES_KEPT_MAX = 10;
const FILES_KEPT_MAX = 1_000;
/** Of all patches of one apply; of files beyond it only the names are kept. */
const PATCH_BYTES_MAX = 1024 * 1024;

const INDEX_NAME = "applies.json";
const diffName = (apply: number) => `applied-${apply}.json`;
const DIFF_NAME = /^applied-\d+\.json$/;

/** The last first. What is damaged is not there. */
export async function listApplies(dir: string): Promise<AppliedChanges[]> {
  const parsed = AppliedChanges.array().safeParse(await readJson(join(dir, INDEX_NAME)));
  return parsed.success ? parsed.data.toReversed() : [];
}

/** Null where it was not kept. */
export async function readAppliedDiff(dir: string, apply: number): Promise<AppliedDiff | null> {
  const parsed = AppliedDiff.safeParse(await readJson(join(dir, diffName(apply))));
  return parsed.success ? parsed.data : null;
}

/** Keeps what was brought to a folder, and forgets the oldest. */
export async function keepAppliedDiff(dir: string, applied: { folder: string; at: string; changes: readonly Change[] }): Promise<void> {
  const { folder, at, changes } = applied;
  const before = (await listApplies(dir)).reverse();
  const apply = (before.at(-1)?.apply ?? 0) + 1;
  const files = await renderFiles(changes.slice(0, FILES_KEPT_MAX));
  const diff: AppliedDiff = { apply, files, isWhole: changes.length === files.length && files.every(({ patch }) => patch !== null) };
  const kept = [...before, { apply, at, folder, count: changes.length, hasDiff: true }].slice(-APPLIES_KEPT_MAX);
  await replaceFile(dir, diffName(apply), JSON.stringify(diff));
  await replaceFile(dir, INDEX_NAME, JSON.stringify(kept));
  // Also those of an apply that was killed in between.
  const wanted = new Set(kept.map((each) => diffName(each.apply)));
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

/** Of a patch of one file, whose lines before the first hunk are about the file. */
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
  return jsonOrNull(await readFile(path, "utf8").catch(() => "null"));
}
