import { GitMerge } from "lucide-react";
import { useState } from "react";
import type { ShipDetails } from "../../../../src/contract/ship/ship-verbs.ts";
import { useStation } from "../../data/station.tsx";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { JobActions } from "../job/job-actions.tsx";

/** The actions on a ship. `onDone` reads it again. */
export function ShipActions({ ship, onDone }: { ship: ShipDetails; onDone(): void }) {
  const { ships } = useStation();
  const [isAsking, setAsking] = useState(false);
  const { id, status, into } = ship;
  const isOver = status === "merged" || status === "cancelled";
  return (
    <JobActions
      noun="ship"
      id={id}
      verbs={ships}
      can={{
        pause: status === "working",
        resume: status === "blocked" || status === "waiting" || status === "paused",
        cancel: !isOver,
        remove: isOver,
      }}
      resumeLabel={status === "paused" ? "Resume" : "Try again"}
      cancelText="Closes its pull request and keeps its branch."
      removeText="Deletes its log for good. The remote does not change."
      onDone={onDone}
    >
      {() => (
        <>
          {status === "open" && (
            <Button look="main" icon={<GitMerge />} onClick={() => setAsking(true)}>
              Merge
            </Button>
          )}
          {isAsking && (
            <Confirm
              title="Merge this pull request?"
              action="Merge"
              onClose={() => setAsking(false)}
              onConfirm={async () => {
                await ships.merge(id);
                onDone();
              }}
            >
              <p>Merges it into {into ?? "the target branch"} as soon as the remote allows, and removes its branch.</p>
            </Confirm>
          )}
        </>
      )}
    </JobActions>
  );
}
