import { setImmediate as breathe } from "node:timers/promises";
import { CaissonError } from "../../contract/error.ts";
import type { DiffPiece, SessionDiff } from "../../contract/session-verbs.ts";
import { type Change, isWithin, kindOf } from "../../workspace/change.ts";
import { isGitsOwn } from "../../workspace/list-inside.ts";
import { whyHeldBack } from "../../workspace/protected-files.ts";
import { diffStat, renderSections } from "../../workspace/render-diff.ts";
import type { ChangedWork } from "./changed-work.ts";
import type { DiffOptions } from "./verbs.ts";

/** See `SessionVerbs.diff`. */
export async function diffWork(work: ChangedWork, { signal, ...ignoring }: DiffOptions = {}): Promise<SessionDiff> {
  const { changes, leftOut, ignored } = await work.changes(ignoring);
  const stats = await diffStat(chosen(changes, ignoring.paths), signal === undefined ? {} : { signal });
  return { session: work.id, files: stats.map((stat) => ({ ...stat, heldBack: whyNotApplied(stat.path) })), leftOut, ignored };
}

/** See `SessionVerbs.patch`. */
export async function* patchWork(
  work: () => Promise<ChangedWork>,
  { signal, brief = false, ...ignoring }: DiffOptions = {},
): AsyncGenerator<DiffPiece, void, void> {
  const { paths } = ignoring;
  const { changes, leftOut, ignored } = await (await work()).changes(ignoring);
  for (const change of chosen(changes, paths)) yield { kind: "file", file: fileOf(change) } satisfies DiffPiece;
  for (const bytes of renderSections(chosen(changes, paths), { brief })) {
    yield { kind: "patch", bytes } satisfies DiffPiece;
    await breathe();
    if (signal?.aborted) throw new CaissonError("cancelled", "the diff was cancelled");
  }
  for (const each of leftOut) yield { kind: "leftOut", leftOut: each } satisfies DiffPiece;
  if (ignored > 0) yield { kind: "ignored", count: ignored } satisfies DiffPiece;
}

/** Those at the paths that were named, or all. */
export function chosen(changes: readonly Change[], paths: readonly string[] = []): readonly Change[] {
  const named = paths.map((path) => path.replace(/\/$/, ""));
  if (named.length === 0) return changes;
  return changes.filter(({ path, from }) => isWithin(path, named) || (from !== null && isWithin(from, named)));
}

function fileOf(change: Change): Extract<DiffPiece, { kind: "file" }>["file"] {
  const { path, from, changedOutside } = change;
  return { path, from, kind: kindOf(change), changedOutside, heldBack: whyNotApplied(path) };
}

/** What applying leaves out by itself. A station elsewhere may list what is in `.git`; no apply writes there. */
function whyNotApplied(path: string): string | null {
  if (path.split("/").some(isGitsOwn)) return "it is in .git, where git runs hooks and reads settings: nothing is applied there";
  return whyHeldBack(path);
}
