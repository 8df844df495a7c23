import { Radio, RotateCcw } from "lucide-react";
import { useState } from "react";
import type { WorkflowView } from "../../../../src/contract/workflow/workflow-verbs.ts";
import { useStation } from "../../data/station.tsx";
import { Button } from "../../parts/button.tsx";
import { allowedActions, JobActions } from "../job/job-actions.tsx";
import { SendSignal } from "./workflow-asks.tsx";

/** The actions on a whole instance. */
export function WorkflowActions({ view, onDone }: { view: WorkflowView; onDone(view: WorkflowView): void }) {
  const { workflows } = useStation();
  const [isSignaling, setSignaling] = useState(false);
  const { id, finish } = view;
  const can = allowedActions(view);
  return (
    <JobActions
      noun="workflow"
      id={id}
      verbs={workflows}
      can={can}
      cancelText="Stops its runs and commands, then runs its cleanup steps. You can retry it afterwards."
      removeText="Deletes its log for good. Its runs and their sessions stay."
      onDone={onDone}
    >
      {(act, isBusy) => (
        <>
          {finish !== null && finish !== "completed" && (
            <Button look="main" icon={<RotateCcw />} disabled={isBusy} onClick={() => act(workflows.retry(id))}>
              Retry
            </Button>
          )}
          {can.signal && <Button look="plain" icon={<Radio />} label="Send a signal" onClick={() => setSignaling(true)} />}
          {isSignaling && <SendSignal view={view} onDone={onDone} onClose={() => setSignaling(false)} />}
        </>
      )}
    </JobActions>
  );
}
