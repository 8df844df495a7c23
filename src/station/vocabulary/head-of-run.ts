import { CaissonError } from "../../contract/error/error.ts";
import type { RunFacts } from "../../contract/run/run-facts.ts";
import type { Log, StreamHead } from "../../log/log.ts";
import { runOf, runStream } from "./station-names.ts";

export interface HeadOfRun {
  facts: RunFacts;
  /** The last event that the facts include. */
  seq: number;
  at: string;
  damage: string | null;
}

/** Returns the stored facts of a run without folding its log. Throws `not_found`. */
export async function headOfRun(log: Log, run: string): Promise<HeadOfRun> {
  const head = await log.head(runStream(run));
  if (head === null) throw new CaissonError("not_found", `there is no run ${run}`, { hint: "`caisson ps --all` lists them." });
  return toRunHead(head);
}

export function toRunHead(head: StreamHead): HeadOfRun {
  const { seq, at, damage } = head;
  const facts = head.head as unknown as RunFacts;
  // The id comes from the stream name, because the first event may be the damaged one.
  return { facts: { ...facts, run: runOf(head.stream) }, seq, at, damage };
}
