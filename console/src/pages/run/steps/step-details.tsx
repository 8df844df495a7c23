import { FolderTree, GitFork, History, ScrollText } from "lucide-react";
import { useState } from "react";
import { Link } from "wouter";
import type { RunTimeline, TimelineFork, TimelineStep } from "../../../../../src/contract/run/run-timeline.ts";
import type { RunView } from "../../../../../src/contract/run/run-verbs.ts";
import { cost } from "../../../parts/amounts.ts";
import { Button, ButtonLink } from "../../../parts/button.tsx";
import { Time } from "../../../parts/time.tsx";
import { visibleLines, visibleText } from "../../../parts/visible-text.ts";
import { ForkDialog } from "./fork-dialog.tsx";
import { RewindDialog } from "./rewind-dialog.tsx";
import { changedText } from "./step-scale.ts";
import styles from "./steps.module.css";

interface StepDetailsProps {
  view: RunView;
  run: RunTimeline;
  step: number;
  /** Undefined before the first step. */
  found: TimelineStep | undefined;
  /** The forks that begin after this step. */
  forks: readonly TimelineFork[];
  /** The step's event in the timeline. */
  seq: number | null;
}

/** What a step did and cost, and the actions that begin there. */
export function StepDetails({ view, run, step, found, forks, seq }: StepDetailsProps) {
  const last = run.steps.at(-1)?.step ?? 0;
  const canShowFiles = found?.isStored === true || step === 0;
  return (
    <section className={styles.details} aria-label="About this step">
      <header className={styles.head}>
        <h2>{step === 0 ? "Before the first step" : `Step ${step} of ${last}`}</h2>
        {found !== undefined && (
          <span className={styles.quiet}>
            {changedText(found)}
            {found.costUsd !== null && ` · ${cost(found.costUsd)}`} · <Time at={found.at} />
          </span>
        )}
        {found?.isInherited === true && run.from !== null && (
          <span className={styles.quiet}>
            taken by{" "}
            <Link href={`/runs/${run.from.run}?tab=steps&step=${step}`} className="link">
              {run.from.run}
            </Link>
          </span>
        )}
        <span className={styles.links}>
          {canShowFiles && (
            <ButtonLink look="plain" icon={<FolderTree />} label="All files at this step" href={`/runs/${view.run}?tab=files&at=${step}`} />
          )}
          {seq !== null && (
            <ButtonLink look="plain" icon={<ScrollText />} label="In the timeline" href={`/runs/${view.run}?event=${seq}`} />
          )}
        </span>
      </header>
      {found !== undefined && found.tools.length > 0 && (
        <p className={styles.tools}>
          {found.tools.map((tool, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the same tool may be called twice.
            <code key={index}>{visibleText(tool)}</code>
          ))}
        </p>
      )}
      {found !== undefined && found.text !== "" && <p className={styles.text}>{visibleLines(found.text)}</p>}
      <StepActions {...{ view, step, last }} />
      {forks.length > 0 && (
        <p className={styles.quiet}>
          Forked here:{" "}
          {forks.map(({ run: fork, name }, index) => (
            <span key={fork}>
              {index > 0 && ", "}
              <Link href={`/runs/${fork}?tab=steps`} className="link">
                {visibleText(name ?? fork)}
              </Link>
            </span>
          ))}
        </p>
      )}
    </section>
  );
}

function StepActions({ view, step, last }: Pick<StepDetailsProps, "view" | "step"> & { last: number }) {
  const [asking, setAsking] = useState<"fork" | "rewind" | null>(null);
  const close = () => setAsking(null);
  return (
    <div className={styles.actions}>
      {view.parent === null ? (
        <>
          <Button look="main" icon={<GitFork />} onClick={() => setAsking("fork")}>
            Fork from here…
          </Button>
          <Button icon={<History />} onClick={() => setAsking("rewind")}>
            Rewind to here…
          </Button>
        </>
      ) : (
        <span className={styles.quiet}>
          Part of{" "}
          <Link href={`/runs/${view.parent.run}?tab=steps`} className="link">
            {view.parent.run}
          </Link>
          , which can be forked and rewound as a whole.
        </span>
      )}
      {asking === "fork" && <ForkDialog {...{ view, step }} onClose={close} />}
      {asking === "rewind" && <RewindDialog {...{ view, step, last }} onClose={close} />}
    </div>
  );
}
