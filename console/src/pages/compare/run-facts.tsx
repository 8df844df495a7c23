import type { ReactNode } from "react";
import { Link } from "wouter";
import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import { cost, plural, tokens } from "../../parts/amounts.ts";
import { workedFor } from "../../parts/time.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { useRunTimeline } from "../run/steps/use-run-timeline.ts";
import { RunStatus } from "../runs/run-status.tsx";
import styles from "./compare.module.css";
import type { LineCounts } from "./compared-files.ts";

interface RunFactsProps {
  views: readonly [RunView, RunView];
  /** Null while they are loading. */
  counts: readonly (LineCounts | null)[];
}

/** The facts about two runs in two columns. */
export function RunFacts({ views, counts }: RunFactsProps) {
  const rows: { name: string; cell(view: RunView, counts: LineCounts | null): ReactNode }[] = [
    { name: "Outcome", cell: (view) => <RunStatus view={view} /> },
    { name: "Began", cell: (view) => <Origin view={view} /> },
    { name: "Model", cell: ({ model }) => visibleText(model) },
    { name: "Cost", cell: ({ costUsd }) => cost(costUsd) },
    { name: "Tokens", cell: ({ usage }) => tokens(usage.inputTokens + usage.outputTokens) },
    { name: "Steps", cell: (view) => <StepCount view={view} /> },
    { name: "Work", cell: ({ workedMs }) => workedFor(workedMs) },
    { name: "Changes", cell: (_, found) => (found === null ? "…" : <Counts counts={found} />) },
    { name: "Last words", cell: (view) => <LastWords view={view} /> },
  ];
  return (
    <table className={styles.facts} aria-label="Facts about both runs">
      <thead>
        <tr>
          <td />
          {views.map((view, index) => (
            <th key={view.run} scope="col">
              <span className={styles.side} data-side={index === 0 ? "one" : "other"} aria-hidden="true">
                {index === 0 ? "A" : "B"}
              </span>{" "}
              <Link href={`/runs/${view.run}`} className="link">
                {visibleText(view.name ?? view.run)}
              </Link>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ name, cell }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            {views.map((view, index) => (
              <td key={view.run}>{cell(view, counts[index] ?? null)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Origin({ view: { forked } }: { view: RunView }) {
  if (forked === null) return "with its task";
  return (
    <>
      {forked.isTail ? "taken back from" : "forked from"}{" "}
      <Link href={`/runs/${forked.run}?tab=steps&step=${forked.step}`} className="link">
        {forked.run}
      </Link>{" "}
      after step {forked.step}
    </>
  );
}

/** The steps of a fork include those of the run that it comes from. */
function StepCount({ view: { steps, forked } }: { view: RunView }) {
  if (forked === null || forked.isTail) return steps;
  return `${steps}, ${Math.max(0, steps - forked.step)} of them its own`;
}

function Counts({ counts: { files, added, removed } }: { counts: LineCounts }) {
  return (
    <>
      {plural(files, "file")} <span className={styles.plus}>+{added}</span> <span className={styles.minus}>−{removed}</span>
    </>
  );
}

function LastWords({ view }: { view: RunView }) {
  const { data } = useRunTimeline(view);
  const text = data?.steps.findLast((step) => step.text !== "")?.text ?? "";
  return <span className={styles.words}>{visibleLines(text)}</span>;
}
