import { CaissonError } from "../../contract/error/error.ts";
import type { RunFacts } from "../../contract/run/run-facts.ts";

/** Throws `conflict` while a run is being rewound: what is added to it now would be lost. */
export function refuseRewinding({ run, rewinding }: Pick<RunFacts, "run" | "rewinding">): void {
  if (rewinding === null) return;
  throw new CaissonError("conflict", `the run ${run} is being rewound to step ${rewinding.toStep}`, {
    hint: `Try again in a moment. If it stays so, finish it: caisson rewind ${run} --to ${rewinding.toStep}`,
    details: { rewinding: rewinding.toStep },
  });
}
