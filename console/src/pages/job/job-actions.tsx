import { useQueryClient } from "@tanstack/react-query";
import { Ban, Pause, Play, Trash2 } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import type { JobView } from "../../../../src/contract/durable/durable-job.ts";
import { lookAtWorkAgain } from "../../data/work-queries.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";

interface JobActionsProps<View> {
  /** Used in titles such as "Cancel this merge?". */
  noun: string;
  id: string;
  verbs: {
    pause?(id: string, reason: { text: string }): Promise<View>;
    resume(id: string): Promise<View>;
    cancel(id: string): Promise<View>;
    remove(id: string): Promise<unknown>;
  };
  /** The actions that its state allows. */
  can: { pause?: boolean; resume: boolean; cancel: boolean; remove: boolean };
  resumeLabel?: string;
  /** The effects of canceling and removing it. */
  cancelText: string;
  removeText: string;
  onDone(view: View): void;
  /** Actions of this kind only, shown between the shared ones. */
  children?: (act: (action: Promise<View>) => void, isBusy: boolean) => ReactNode;
}

/** Returns the actions that a job's state allows. A cancelled job ends soon, so nothing else is offered. */
export function allowedActions({ finish, paused, cancelRequested }: Pick<JobView, "finish" | "paused" | "cancelRequested">) {
  const isActive = finish === null && cancelRequested === null;
  return {
    pause: isActive && paused === null,
    resume: isActive && paused !== null,
    cancel: isActive,
    signal: isActive,
    remove: finish !== null,
  };
}

/** The actions that all durable jobs share: pause, resume, cancel and remove. */
export function JobActions<View>(props: JobActionsProps<View>) {
  const { noun, id, verbs, can, resumeLabel = "Resume", cancelText, removeText, onDone, children } = props;
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const [asking, setAsking] = useState<"cancel" | "remove" | null>(null);
  const [isBusy, setBusy] = useState(false);
  const close = () => setAsking(null);
  const act = (action: Promise<View> | undefined) => {
    setBusy(true);
    action?.then(onDone, sayProblem).finally(() => setBusy(false));
  };
  return (
    <>
      {can.pause && (
        <Button icon={<Pause />} disabled={isBusy} onClick={() => act(verbs.pause?.(id, { text: "paused in the console" }))}>
          Pause
        </Button>
      )}
      {can.resume && (
        <Button look="main" icon={<Play />} disabled={isBusy} onClick={() => act(verbs.resume(id))}>
          {resumeLabel}
        </Button>
      )}
      {children?.(act, isBusy)}
      {can.cancel && (
        <Button look="danger" icon={<Ban />} disabled={isBusy} onClick={() => setAsking("cancel")}>
          Cancel
        </Button>
      )}
      {can.remove && <Button look="danger" icon={<Trash2 />} label="Remove" onClick={() => setAsking("remove")} />}
      {asking === "cancel" && (
        <Confirm
          title={`Cancel this ${noun}?`}
          action={`Cancel ${noun}`}
          onClose={close}
          onConfirm={async () => onDone(await verbs.cancel(id))}
        >
          <p>{cancelText}</p>
        </Confirm>
      )}
      {asking === "remove" && (
        <Confirm
          title={`Remove this ${noun}?`}
          action="Remove"
          onClose={close}
          onConfirm={async () => {
            await verbs.remove(id);
            say(`The ${noun} was removed.`);
            lookAtWorkAgain(queries);
            navigate("/work");
          }}
        >
          <p>{removeText}</p>
        </Confirm>
      )}
    </>
  );
}
