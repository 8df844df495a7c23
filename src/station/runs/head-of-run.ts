import { CaissonError } from "../../contract/error.ts";
import type { RunFacts } from "../../contract/run-facts.ts";
import type { Log, StreamHead } from "../../log/log.ts";

export const runStream = (run: string) => `run/${run}`;
export const runOf = (stream: string) => stream.slice("run/".length);

export interface HeadOfRun {
  facts: RunFacts;
  /** The last event that is in the facts. */
  seq: number;
  at: string;
  damage: string | null;
}

/** What the log keeps of a run beside its events; nothing is folded. Throws `not_found`. */
export async function headOfRun(log: Log, run: string): Promise<HeadOfRun> {
  const head = await log.head(runStream(run));
  if (head === null) throw new CaissonError("not_found", `there is no run ${run}`, { hint: "`caisson ps --all` lists them." });
  return toRunHead(head);
}

export function toRunHead(head: StreamHead): HeadOfRun {
  const { seq, at, damage } = head;
  const facts = head.head as unknown as RunFacts;
  // The first event may be the damaged one.
  return { facts: { ...facts, run: runOf(head.stream) }, seq, at, damage };
}
