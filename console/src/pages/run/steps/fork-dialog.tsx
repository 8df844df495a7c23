import { useState } from "react";
import { useLocation } from "wouter";
import type { RunView } from "../../../../../src/contract/run/run-verbs.ts";
import { useKnownPlaces } from "../../../data/known-places.ts";
import { useStation } from "../../../data/station.tsx";
import { Button } from "../../../parts/button.tsx";
import { Dialog } from "../../../parts/dialog.tsx";
import { Field, LongField } from "../../../parts/field.tsx";
import { Problem } from "../../../parts/problem.tsx";
import { say } from "../../../parts/toasts.tsx";
import { pointWords } from "../points/use-points.ts";
import { emptyFork, type ForkProblems, forkRequest, hintsOfForm } from "./fork-request.ts";
import styles from "./steps.module.css";

/** Asks how to continue from a step, then creates the forks. */
export function ForkDialog({ view, step, onClose }: { view: RunView; step: number; onClose(): void }) {
  const station = useStation();
  const { models } = useKnownPlaces();
  const [, navigate] = useLocation();
  const [draft, setDraft] = useState(emptyFork);
  const [problems, setProblems] = useState<ForkProblems>({});
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const field = (name: keyof typeof draft) => ({
    value: draft[name],
    problem: problems[name],
    onChange: (event: { target: { value: string } }) => setDraft({ ...draft, [name]: event.target.value }),
  });
  const fork = async () => {
    const checked = forkRequest(draft, step);
    setProblems(checked.problems ?? {});
    setError(null);
    if (checked.request === null) return;
    setBusy(true);
    try {
      const forks = await station.runs.fork(view.run, checked.request);
      const [first] = forks;
      if (forks.length === 1 && first !== undefined) navigate(`/runs/${first.run}`);
      else {
        say(`${forks.length} forks were created.`);
        onClose();
        navigate(`/runs/${view.run}?tab=forks`);
      }
    } catch (refusal) {
      setError(hintsOfForm(refusal));
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={`Fork ${pointWords({ step })}`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="main" disabled={isBusy} onClick={() => void fork()}>
            {isBusy ? "One moment…" : "Fork"}
          </Button>
        </>
      }
    >
      <div className={styles.form}>
        <p className={styles.quiet}>
          A fork is another run with the conversation, the files and the remaining limits of this one at that step. This run does not
          change.
        </p>
        <LongField
          label="Message"
          placeholder="For example: find the cause first"
          hint="Without one, a fork in the middle of a turn continues at once; otherwise it waits for a message."
          rows={3}
          {...field("text")}
          data-first-focus=""
        />
        <div className={styles.pair}>
          <Field label="Number of forks" type="number" min={1} max={100} {...field("count")} />
          <Field label="Name" placeholder="optional" {...field("name")} />
        </div>
        <div className={styles.pair}>
          <Field label="Model" placeholder={view.model} offers={models} {...field("model")} />
          <Field label="Further steps" type="number" min={1} placeholder="what the run had left" {...field("steps")} />
        </div>
        {error !== null && <Problem error={error} />}
      </div>
    </Dialog>
  );
}
