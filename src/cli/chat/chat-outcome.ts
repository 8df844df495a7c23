import { CaissonError } from "../../contract/error.ts";
import type { RunView } from "../../contract/run-verbs.ts";
import type { ChangedFile } from "../../contract/session-verbs.ts";
import type { CliContext } from "../context.ts";
import { changedFileRow } from "../sessions/changed-file-row.ts";
import { dim, type Line, line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

const FILES_SHOWN = 8;

/** What a run's files differ in from the user's folder; null where its session is gone. */
export async function unappliedFiles(context: CliContext, run: string): Promise<ChangedFile[] | null> {
  try {
    return (await context.station.sessions.diff(run, { signal: context.interruption.signal })).files;
  } catch (error) {
    if (error instanceof CaissonError && (error.code === "not_found" || error.code === "gone")) return null;
    throw error;
  }
}

/** The whole conversation in a few figures; each turn has shown its own. */
export function aboutRun({ steps, usage, costUsd }: Pick<RunView, "steps" | "usage" | "costUsd">): string {
  const tokens = (usage.inputTokens + usage.outputTokens).toLocaleString("en");
  const cost = costUsd === null ? "cost unknown" : `$${costUsd.toFixed(4)}`;
  return `${steps} ${steps === 1 ? "step" : "steps"}, ${tokens} tokens, ${cost} in all`;
}

/** After a turn: what is not applied, and what can be done with it. */
export function turnLines(files: readonly ChangedFile[] | null): Line[] {
  if (files === null || files.length === 0) return [];
  const rows = files.slice(0, FILES_SHOWN).map(changedFileRow);
  const more = files.length - rows.length;
  return [...table(rows), dim(`  ${more > 0 ? `and ${more} more · ` : ""}not applied: /diff shows it, /apply brings it into your folder`)];
}

/** On leaving: nothing is lost, and how to come back. */
export function leavingLines(run: string | null, files: readonly ChangedFile[] | null, isOver: boolean): Line[] {
  if (run === null) return [];
  const count = files?.length ?? 0;
  const back = [`  caisson chat --continue ${run}`, dim(isOver ? "go on with it" : "go on with it: the agent had not finished")] as const;
  const unapplied = [
    [`  caisson diff ${run}`, dim("look at it")],
    [`  caisson apply ${run}`, dim("bring it into your folder")],
  ] as const;
  return [
    ...(count === 0 ? [] : [line`${count} changed ${count === 1 ? "file is" : "files are"} not applied.`]),
    ...table([back, ...(count === 0 ? [] : unapplied)]),
  ];
}
