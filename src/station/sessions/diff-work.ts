import { setImmediate as breathe } from "node:timers/promises";
import { CaissonError } from "../../contract/error/error.ts";
import type { DiffPiece, SessionDiff } from "../../contract/session/session-verbs.ts";
import type { DiffOptions } from "../../verbs/sessions.ts";
import { type Change, type FileSide, isBelowAny, kindOf } from "../../workspace/change.ts";
import { digestOf } from "../../workspace/changes-archive.ts";
import { isGitsOwn } from "../../workspace/list-inside.ts";
import { whyHeldBack } from "../../workspace/protected-files.ts";
import { diffStat, renderSections } from "../../workspace/render-diff.ts";
import type { ChangedWork } from "./changed-work.ts";

/** See `SessionVerbs.diff`. */
export async function diffWork(work: ChangedWork, { signal, ...ignoring }: DiffOptions = {}): Promise<SessionDiff> {
  const { changes, leftOut, ignored } = await work.changes(ignoring);
  const filtered = filterChanges(changes, ignoring.paths);
  const stats = await diffStat(filtered, signal === undefined ? {} : { signal });
  const files = stats.map((stat, at) => ({ ...stat, digest: digestOfSide(filtered[at]?.after), heldBack: whyNotApplied(stat.path) }));
  return { session: work.id, files, leftOut, ignored };
}

/** See `SessionVerbs.patch`. */
export async function* patchWork(
  work: () => Promise<ChangedWork>,
  { signal, brief = false, ...ignoring }: DiffOptions = {},
): AsyncGenerator<DiffPiece, void, void> {
  const { paths } = ignoring;
  const { changes, leftOut, ignored } = await (await work()).changes(ignoring);
  const filtered = filterChanges(changes, paths);
  for (const change of filtered) yield { kind: "file", file: fileOf(change) } satisfies DiffPiece;
  for (const bytes of renderSections(filtered, { brief })) {
    yield { kind: "patch", bytes } satisfies DiffPiece;
    await breathe();
    if (signal?.aborted) throw new CaissonError("cancelled", "the diff was cancelled");
  }
  for (const each of leftOut) yield { kind: "leftOut", leftOut: each } satisfies DiffPiece;
  if (ignored > 0) yield { kind: "ignored", count: ignored } satisfies DiffPiece;
}

/** Returns the changes at the given paths, or all changes if no paths are given. */
export function filterChanges(changes: readonly Change[], paths: readonly string[] = []): readonly Change[] {
  const named = paths.map((path) => path.replace(/\/$/, ""));
  if (named.length === 0) return changes;
  return changes.filter(({ path, from }) => isBelowAny(path, named) || (from !== null && isBelowAny(from, named)));
}

const digestOfSide = (side: FileSide | null | undefined) => (side == null ? null : digestOf(side.content));

function fileOf(change: Change): Extract<DiffPiece, { kind: "file" }>["file"] {
  const { path, from, changedOutside } = change;
  return { path, from, kind: kindOf(change), changedOutside, heldBack: whyNotApplied(path) };
}

/**
 * Returns why an apply leaves a file out by default. A remote station may list files in `.git`, but no apply writes
 * there.
 */
function whyNotApplied(path: string): string | null {
  if (path.split("/").some(isGitsOwn)) return "it is in .git, where git runs hooks and reads settings; Caisson never writes there";
  return whyHeldBack(path);
}
