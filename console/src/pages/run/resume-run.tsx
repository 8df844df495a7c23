import { Play } from "lucide-react";
import { useState } from "react";
import type { Budgets } from "../../../../src/contract/run/run.ts";
import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { BudgetFields } from "./budget-fields.tsx";

/** The factor for a reached limit, as when a run asks for more. */
const MORE = 1.5;

/** Resumes a paused run, or one that ended before it was done. If it reached a limit, asks for a larger one first. */
export function ResumeRun({ view, isBusy, onResume }: { view: RunView; isBusy: boolean; onResume(budgets: Budgets | null): void }) {
  const [isAsking, setAsking] = useState(false);
  const [budgets, setBudgets] = useState<Budgets>({});
  const usual = largerThan(view);
  const resume = () => {
    setAsking(false);
    onResume({ ...usual, ...budgets });
  };
  return (
    <>
      <Button look="main" icon={<Play />} disabled={isBusy} onClick={() => (usual === null ? onResume(null) : setAsking(true))}>
        Resume
      </Button>
      {isAsking && (
        <Dialog
          title="Resume with larger limits"
          onClose={() => setAsking(false)}
          actions={
            <>
              <Button onClick={() => setAsking(false)}>Cancel</Button>
              <Button look="main" onClick={resume} data-first-focus="">
                Resume
              </Button>
            </>
          }
        >
          <p>Limits for the whole run, including what it has used so far.</p>
          <BudgetFields budgets={budgets} onChange={setBudgets} />
        </Dialog>
      )}
    </>
  );
}

/** Returns the limits with the one that ended the run raised; null if no limit ended it. */
function largerThan({ status, finish, budgets, bounds, steps, workedMs, costUsd, usage }: RunView): Budgets | null {
  if (status !== "ended") return null;
  if (finish === "max_steps") return { ...budgets, steps: Math.ceil(Math.max(budgets.steps ?? bounds.steps, steps) * MORE) };
  if (finish === "timeout") return { ...budgets, timeMs: Math.ceil(Math.max(budgets.timeMs ?? bounds.timeMs, workedMs) * MORE) };
  if (finish !== "budget") return null;
  const tokens = usage.inputTokens + usage.outputTokens;
  return {
    ...budgets,
    ...(budgets.costUsd !== undefined && { costUsd: Math.max(budgets.costUsd, costUsd ?? 0) * MORE }),
    ...(budgets.tokens !== undefined && { tokens: Math.ceil(Math.max(budgets.tokens, tokens) * MORE) }),
  };
}
