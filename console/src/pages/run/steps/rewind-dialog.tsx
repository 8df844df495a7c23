import { useQueryClient } from "@tanstack/react-query";
import type { RunView } from "../../../../../src/contract/run/run-verbs.ts";
import { putRun } from "../../../data/queries.ts";
import { useStation } from "../../../data/station.tsx";
import { plural } from "../../../parts/amounts.ts";
import { Confirm } from "../../../parts/confirm.tsx";
import { useFilterParams } from "../../../parts/filter-params.ts";
import { say } from "../../../parts/toasts.tsx";
import { pointWords } from "../points/use-points.ts";

interface RewindDialogProps {
  view: RunView;
  step: number;
  /** The last step of the run. */
  last: number;
  onClose(): void;
}

/** Says what a rewind does, then takes the run back. */
export function RewindDialog({ view, step, last, onClose }: RewindDialogProps) {
  const station = useStation();
  const queries = useQueryClient();
  const [, change] = useFilterParams();
  const then = pointWords({ step });
  const rewind = async () => {
    const { run, tail, files } = await station.runs.rewind(view.run, { to: step });
    putRun(queries, run);
    change({ step: String(step), since: null, file: null });
    say(`The run is as it was ${then}: ${plural(files.length, "file")} restored. ${tail} has what came after.`);
    await queries.invalidateQueries({ predicate: ({ queryKey }) => /^(session|points|run-timeline)/.test(String(queryKey[0])) });
  };
  const lostSteps = last - step;
  return (
    <Confirm title={`Rewind to ${step === 0 ? then : `step ${step}`}?`} action="Rewind" onConfirm={rewind} onClose={onClose}>
      {view.status !== "ended" && view.status !== "paused" && <p>Interrupts the run first.</p>}
      <p>
        Takes back the conversation and the files of the whole sandbox
        {lostSteps > 0 && `: ${plural(lostSteps, "step")} no longer ${lostSteps === 1 ? "counts" : "count"}`}. The run then waits for your
        message.
      </p>
      <p>What is taken back stays as a fork, which you can read, continue and fork. What it cost still counts.</p>
      <p>Changes that were applied to your folder stay applied.</p>
    </Confirm>
  );
}
