import type { FinishReason } from "../contract/run.ts";
import type { Journal } from "./journal.ts";
import type { RunNetwork } from "./run-network.ts";

/** The last event of a run. What its network did until now comes before it: nobody reads on after it. */
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
