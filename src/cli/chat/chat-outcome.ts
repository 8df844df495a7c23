import { CaissonError } from "../../contract/error/error.ts";
import type { RunView } from "../../contract/run/run-verbs.ts";
import type { ChangedFile } from "../../contract/session/session-verbs.ts";
import type { CliContext } from "../context.ts";
import { changedFileRow } from "../sessions/changed-file-row.ts";
import { dim, type Line, line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

const FILES_SHOWN = 8;

/**
 * Returns the files that differ between a run's session and the user's folder, or null if the session no longer exists.
 */
export async function unappliedFiles(context: CliContext, run: string): Promise<ChangedFile[] | null> {
  try {
    return (await context.station.sessions.diff(run, { signal: context.interruption.signal })).files;
  } catch (error) {
    if (error instanceof CaissonError && (error.code === "not_found" || error.code === "gone")) return null;
    throw error;
  }
}

/** Summarizes the whole conversation; each turn printed its own figures. */
export function aboutRun({ steps, usage, costUsd }: Pick<RunView, "steps" | "usage" | "costUsd">): string {
  const tokens = (usage.inputTokens + usage.outputTokens).toLocaleString("en");
  const cost = costUsd === null ? "cost unknown" : `$${costUsd.toFixed(4)}`;
  return `${steps} ${steps === 1 ? "step" : "steps"}, ${tokens} tokens, ${cost} in all`;
}

/** Returns the lines after a turn: unapplied files, and the commands for them. */
export function turnLines(files: readonly ChangedFile[] | null): Line[] {
  if (files === null || files.length === 0) return [];
  const rows = files.slice(0, FILES_SHOWN).map(changedFileRow);
  const more = files.length - rows.length;
  return [...table(rows), dim(`  ${more > 0 ? `and ${more} more · ` : ""}not applied: /diff to review, /apply to update your folder`)];
}

/** Returns the lines on exit: how to continue the chat, and what is not applied. */
export function leavingLines(run: string | null, files: readonly ChangedFile[] | null, isOver: boolean): Line[] {
  if (run === null) return [];
  const count = files?.length ?? 0;
  const back = [`  caisson chat --continue ${run}`, dim(isOver ? "continue it" : "continue it: the agent had not finished")] as const;
  const unapplied = [
    [`  caisson diff ${run}`, dim("review the changes")],
    [`  caisson apply ${run}`, dim("apply them to your folder")],
  ] as const;
  return [
    ...(count === 0 ? [] : [line`${count} changed ${count === 1 ? "file is" : "files are"} not applied.`]),
    ...table([back, ...(count === 0 ? [] : unapplied)]),
  ];
}
