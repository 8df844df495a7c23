import type { FinishReason } from "../contract/outcome.ts";
import type { Journal } from "./journal.ts";
import type { RunNetwork } from "./run-network.ts";

/** Appends the last event of a run. Pending network events go first, because readers stop at it. */
export async function endRun(
  run: { journal: Journal; network: Pick<RunNetwork, "settle"> },
  finish: { reason: FinishReason; text: string; ifHeard?: number },
): Promise<void> {
  const { journal } = run;
  await run.network.settle();
  const { step, usage, costUsd } = journal.state;
  const { reason, text } = finish;
  await journal.append([{ type: "run.ended", data: { reason, text, steps: step, usage, costUsd } }], {
    ...(finish.ifHeard === undefined ? {} : { ifHeard: finish.ifHeard }),
  });
}
