import { useMemo } from "react";
import type { RunTimeline, TimelineStep } from "../../../../../src/contract/run/run-timeline.ts";
import type { RunView } from "../../../../../src/contract/run/run-verbs.ts";
import { Empty } from "../../../parts/empty.tsx";
import { useFilterParams } from "../../../parts/filter-params.ts";
import { Loading } from "../../../parts/loading.tsx";
import { Problem } from "../../../parts/problem.tsx";
import { Scroll } from "../../../parts/scroll.tsx";
import type { Timeline } from "../timeline.ts";
import { Scrubber } from "./scrubber.tsx";
import { StepChanges } from "./step-changes.tsx";
import { StepDetails } from "./step-details.tsx";
import { StepList } from "./step-list.tsx";
import { chosenStep, comparedStep } from "./step-scale.ts";
import styles from "./steps.module.css";
import { useRunTimeline } from "./use-run-timeline.ts";

/** Goes through the steps of a run: what each did and changed, and the actions that begin at one. */
export default function Steps({ view, events }: { view: RunView; events: Timeline }) {
  const { data, error, refetch } = useRunTimeline(view);
  if (data === undefined) return error === null ? <Loading rows={8} /> : <Problem error={error} onRetry={() => void refetch()} />;
  if (data.steps.length === 0) {
    return <Empty title="No steps yet">Each call of the model, with the tools that it uses, appears here as a step.</Empty>;
  }
  return <OpenSteps {...{ view, events }} run={data} />;
}

function OpenSteps({ view, events, run }: { view: RunView; events: Timeline; run: RunTimeline }) {
  const [params, change] = useFilterParams();
  const { steps } = run;
  const step = chosenStep(steps, params.get("step"));
  const base = comparedStep(steps, { step, named: params.get("since") });
  const forks = run.forks.filter(({ from }) => from.run === view.run);
  const forked = useMemo(
    () => new Set(run.forks.flatMap(({ from, isTail }) => (from.run === run.run && !isTail ? [from.step] : []))),
    [run],
  );
  const onChoose = (next: number) => change({ step: String(next), since: null, file: null });
  const found = steps.find((each) => each.step === step);
  return (
    <div className={styles.steps}>
      <Scrubber {...{ steps, base, forked, onChoose }} chosen={step} />
      <div className={styles.columns}>
        <StepList {...{ steps, forked, onChoose }} chosen={step} />
        <Scroll className={styles.shown} label="Chosen step">
          <StepDetails
            {...{ view, run, step, found }}
            forks={forks.filter(({ from, isTail }) => from.step === step && !isTail)}
            seq={events.steps.findLast((each) => each.step === step)?.seq ?? null}
          />
          <StepChanges
            {...{ view, steps, step, base }}
            isStored={isShown(found, { view, step })}
            onBase={(since) => change({ since: String(since), file: null })}
          />
        </Scroll>
      </div>
    </div>
  );
}

/** Before the first step, the files are those that the session began with. The station knows whether it has them. */
function isShown(found: TimelineStep | undefined, { view, step }: { view: RunView; step: number }): boolean {
  if (step === 0) return view.steps > 0;
  return found?.isStored === true;
}
