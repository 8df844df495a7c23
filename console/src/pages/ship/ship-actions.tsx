import { useQueryClient } from "@tanstack/react-query";
import { Ban, GitMerge, Pause, RotateCcw, Trash2 } from "lucide-react";
import { useState } from "react";
import { useLocation } from "wouter";
import type { ShipDetails } from "../../../../src/contract/ship-verbs.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { useStation } from "../../station/station.tsx";
import { lookAtWorkAgain } from "../../station/work-queries.ts";

/** What can be done with a ship. `onDone` looks at it again. */
export function ShipActions({ ship, onDone }: { ship: ShipDetails; onDone(): void }) {
  const { ships } = useStation();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const [asking, setAsking] = useState<"merge" | "cancel" | "remove" | null>(null);
  const [isBusy, setBusy] = useState(false);
  const close = () => setAsking(null);
  const { id, status, into } = ship;
  const isOver = status === "merged" || status === "cancelled";
  const act = (action: Promise<unknown>) => {
    setBusy(true);
    action.then(onDone, sayProblem).finally(() => setBusy(false));
  };
  return (
    <>
      {(status === "blocked" || status === "waiting" || status === "paused") && (
        <Button look="main" icon={<RotateCcw />} disabled={isBusy} onClick={() => act(ships.resume(id))}>
          {status === "paused" ? "Resume" : "Try again"}
        </Button>
      )}
      {status === "working" && (
        <Button icon={<Pause />} disabled={isBusy} onClick={() => act(ships.pause(id, { text: "paused in the console" }))}>
          Pause
        </Button>
      )}
      {status === "open" && (
        <Button look="main" icon={<GitMerge />} onClick={() => setAsking("merge")}>
          Merge
        </Button>
      )}
      {!isOver && (
        <Button look="danger" icon={<Ban />} onClick={() => setAsking("cancel")}>
          Cancel
        </Button>
      )}
      {isOver && <Button look="danger" icon={<Trash2 />} label="Remove" onClick={() => setAsking("remove")} />}
      {asking === "merge" && (
        <Confirm
          title="Merge it?"
          action="Merge"
          onClose={close}
          onConfirm={async () => {
            await ships.merge(id);
            onDone();
          }}
        >
          <p>Once the remote says that it can be, it is merged into {into ?? "the target's branch"}, and its own branch is removed.</p>
        </Confirm>
      )}
      {asking === "cancel" && (
        <Confirm
          title="Cancel this ship?"
          action="Cancel it"
          onClose={close}
          onConfirm={async () => {
            await ships.cancel(id);
            onDone();
          }}
        >
          <p>Its pull request is closed. Its branch is kept.</p>
        </Confirm>
      )}
      {asking === "remove" && (
        <Confirm
          title="Remove this ship?"
          action="Remove"
          onClose={close}
          onConfirm={async () => {
            await ships.remove(id);
            say("The ship was removed.");
            lookAtWorkAgain(queries);
            navigate("/work");
          }}
        >
          <p>Its log is forgotten for good. What it brought to the remote stays.</p>
        </Confirm>
      )}
    </>
  );
}
