import { useQueryClient } from "@tanstack/react-query";
import { Ban, Pause, Play, Send, Trash2 } from "lucide-react";
import { useState } from "react";
import { useLocation } from "wouter";
import type { MergeView } from "../../../../src/contract/merge-verbs.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { useStation } from "../../station/station.tsx";
import { lookAtWorkAgain } from "../../station/work-queries.ts";
import { ShipDialog } from "../ship/ship-dialog.tsx";

/** What can be done with a merge as a whole. */
export function MergeActions({ view, onDone }: { view: MergeView; onDone(view: MergeView): void }) {
  const { merges } = useStation();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const [asking, setAsking] = useState<"cancel" | "remove" | "ship" | null>(null);
  const [isBusy, setBusy] = useState(false);
  const close = () => setAsking(null);
  const act = (action: Promise<MergeView>) => {
    setBusy(true);
    action
      .then(onDone)
      .catch(sayProblem)
      .finally(() => setBusy(false));
  };
  const { id, finish, paused, result, cancelRequested } = view;
  const isGoing = finish === null && cancelRequested === null;
  return (
    <>
      {isGoing && paused === null && (
        <Button icon={<Pause />} disabled={isBusy} onClick={() => act(merges.pause(id, { text: "paused in the console" }))}>
          Pause
        </Button>
      )}
      {isGoing && paused !== null && (
        <Button look="main" icon={<Play />} disabled={isBusy} onClick={() => act(merges.resume(id))}>
          Resume
        </Button>
      )}
      {result !== null && finish === "completed" && (
        <Button look="main" icon={<Send />} onClick={() => setAsking("ship")}>
          Ship…
        </Button>
      )}
      {isGoing && (
        <Button look="danger" icon={<Ban />} onClick={() => setAsking("cancel")}>
          Cancel
        </Button>
      )}
      {finish !== null && <Button look="danger" icon={<Trash2 />} label="Remove" onClick={() => setAsking("remove")} />}
      {asking === "ship" && result !== null && <ShipDialog of={result} title={view.title} onClose={close} />}
      {asking === "cancel" && (
        <Confirm title="Cancel this merge?" action="Cancel it" onClose={close} onConfirm={async () => onDone(await merges.cancel(id))}>
          <p>What it made on the way is removed. The sessions stay as they are.</p>
        </Confirm>
      )}
      {asking === "remove" && (
        <Confirm
          title="Remove this merge?"
          action="Remove"
          onClose={close}
          onConfirm={async () => {
            await merges.remove(id);
            say("The merge was removed.");
            lookAtWorkAgain(queries);
            navigate("/work");
          }}
        >
          <p>Its log is forgotten for good. Its result stays.</p>
        </Confirm>
      )}
    </>
  );
}
