import { useQueryClient } from "@tanstack/react-query";
import { Ban, Pause, Play, Radio, RotateCcw, Trash2 } from "lucide-react";
import { useState } from "react";
import { useLocation } from "wouter";
import type { WorkflowView } from "../../../../src/contract/workflow-verbs.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { useStation } from "../../station/station.tsx";
import { lookAtWorkAgain } from "../../station/work-queries.ts";
import { SendSignal } from "./workflow-asks.tsx";

/** What can be done with an instance as a whole. */
export function WorkflowActions({ view, onDone }: { view: WorkflowView; onDone(view: WorkflowView): void }) {
  const { workflows } = useStation();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const [asking, setAsking] = useState<"cancel" | "remove" | "signal" | null>(null);
  const [isBusy, setBusy] = useState(false);
  const act = (action: Promise<WorkflowView>) => {
    setBusy(true);
    action
      .then(onDone)
      .catch(sayProblem)
      .finally(() => setBusy(false));
  };
  const { id, finish, paused, cancelRequested } = view;
  const isOpen = finish === null;
  const isGoing = isOpen && cancelRequested === null;
  return (
    <>
      {isGoing && paused === null && (
        <Button icon={<Pause />} disabled={isBusy} onClick={() => act(workflows.pause(id, { text: "paused in the console" }))}>
          Pause
        </Button>
      )}
      {isGoing && paused !== null && (
        <Button look="main" icon={<Play />} disabled={isBusy} onClick={() => act(workflows.resume(id))}>
          Resume
        </Button>
      )}
      {!isOpen && finish !== "completed" && (
        <Button look="main" icon={<RotateCcw />} disabled={isBusy} onClick={() => act(workflows.retry(id))}>
          Retry
        </Button>
      )}
      {isGoing && <Button look="plain" icon={<Radio />} label="Send a signal" onClick={() => setAsking("signal")} />}
      {isGoing && (
        <Button look="danger" icon={<Ban />} disabled={isBusy} onClick={() => setAsking("cancel")}>
          Cancel
        </Button>
      )}
      {!isOpen && <Button look="danger" icon={<Trash2 />} label="Remove" onClick={() => setAsking("remove")} />}
      {asking === "signal" && <SendSignal view={view} onDone={onDone} onClose={() => setAsking(null)} />}
      {asking === "cancel" && (
        <Confirm
          title="Cancel this workflow?"
          action="Cancel it"
          onConfirm={async () => onDone(await workflows.cancel(id))}
          onClose={() => setAsking(null)}
        >
          <p>Runs and commands that are at work for it are ended, and what it does in any case is done. It can be retried afterwards.</p>
        </Confirm>
      )}
      {asking === "remove" && (
        <Confirm
          title="Remove this workflow?"
          action="Remove"
          onConfirm={async () => {
            await workflows.remove(id);
            say("The workflow was removed.");
            lookAtWorkAgain(queries);
            navigate("/work");
          }}
          onClose={() => setAsking(null)}
        >
          <p>Its log is forgotten for good. Its runs and their sessions stay.</p>
        </Confirm>
      )}
    </>
  );
}
