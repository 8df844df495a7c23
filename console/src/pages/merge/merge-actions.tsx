import { Send } from "lucide-react";
import { useState } from "react";
import type { MergeView } from "../../../../src/contract/merge/merge-verbs.ts";
import { useStation } from "../../data/station.tsx";
import { Button } from "../../parts/button.tsx";
import { allowedActions, JobActions } from "../job/job-actions.tsx";
import { ShipDialog } from "../ship/ship-dialog.tsx";

export function MergeActions({ view, onDone }: { view: MergeView; onDone(view: MergeView): void }) {
  const { merges } = useStation();
  const [isShipping, setShipping] = useState(false);
  const { id, finish, result } = view;
  return (
    <JobActions
      noun="merge"
      id={id}
      verbs={merges}
      can={allowedActions(view)}
      cancelText="Removes its intermediate results. The merged sessions do not change."
      removeText="Deletes its log for good. Its result stays."
      onDone={onDone}
    >
      {() => (
        <>
          {result !== null && finish === "completed" && (
            <Button look="main" icon={<Send />} onClick={() => setShipping(true)}>
              Ship…
            </Button>
          )}
          {isShipping && result !== null && <ShipDialog of={result} title={view.title} onClose={() => setShipping(false)} />}
        </>
      )}
    </JobActions>
  );
}
