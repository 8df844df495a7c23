import { type UndoOptions, undoTurn } from "../sessions/undo-turn.ts";

/** Restores the files of a run as they were after a step, for a caller that holds the run. Returns what changed. */
export async function restoreFiles(run: string, step: number, options: UndoOptions): Promise<readonly string[]> {
  // An open run has no driver then, so its files are as much at rest as those of a run that ended.
  const facts: UndoOptions["facts"] = async (each) => ({ ...(await options.facts(each)), status: "ended" });
  return (await undoTurn(run, { to: step }, { ...options, facts })).files;
}
