import { FileDiff } from "lucide-react";
import type { BestView } from "../../../../src/contract/best/best-verbs.ts";
import { useStation } from "../../data/station.tsx";
import { ButtonLink } from "../../parts/button.tsx";
import { allowedActions, JobActions } from "../job/job-actions.tsx";

export function BestActions({ view, onDone }: { view: BestView; onDone(view: BestView): void }) {
  const { bests } = useStation();
  const { id, winner } = view;
  return (
    <JobActions
      noun="best-of"
      id={id}
      verbs={bests}
      can={allowedActions(view)}
      cancelText="Stops the attempts that are at work. Their runs and files stay."
      removeText="Deletes its log for good. Its attempts stay in the list of runs, with their files."
      onDone={onDone}
    >
      {() =>
        winner !== null && (
          <ButtonLink look="main" icon={<FileDiff />} href={`/runs/${winner.run}?tab=changes`}>
            Review the winner
          </ButtonLink>
        )
      }
    </JobActions>
  );
}
