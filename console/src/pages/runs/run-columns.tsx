import type { ReactNode } from "react";
import { isStationLabel } from "../../../../src/contract/label/station-labels.ts";
import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import { Activity } from "../../parts/activity.tsx";
import { cost, tokens } from "../../parts/amounts.ts";
import type { Column } from "../../parts/list.tsx";
import { Time, workedFor } from "../../parts/time.tsx";
import { visibleLines, visibleText, visibleTitle } from "../../parts/visible-text.ts";
import styles from "./run-columns.module.css";
import { RunStatus } from "./run-status.tsx";

export const runColumns: readonly Column<RunView>[] = [
  { id: "status", name: "Status", width: "104px", canSort: true, cell: (run) => <RunStatus view={run} /> },
  { id: "title", name: "Task", width: "minmax(180px, 1fr)", canSort: true, cell: (run) => <Title run={run} /> },
  { id: "agent", name: "Agent", width: "84px", canSort: true, cell: (run) => <Quiet>{visibleText(run.agent)}</Quiet> },
  { id: "runtime", name: "Runtime", width: "64px", canSort: true, cell: (run) => <Quiet>{run.sandbox?.runtime ?? ""}</Quiet> },
  { id: "activity", name: "Activity", width: "64px", cell: (run) => <Activity of={run.run} /> },
  {
    id: "tokens",
    name: "Tokens",
    width: "56px",
    canSort: true,
    isEnd: true,
    cell: ({ usage }) => <Quiet>{tokens(usage.inputTokens + usage.outputTokens)}</Quiet>,
  },
  { id: "cost", name: "Cost", width: "52px", canSort: true, isEnd: true, cell: (run) => <Quiet>{cost(run.costUsd)}</Quiet> },
  { id: "worked", name: "Time", width: "72px", canSort: true, isEnd: true, cell: (run) => <Quiet>{workedFor(run.workedMs)}</Quiet> },
  {
    id: "updated",
    name: "Changed",
    width: "76px",
    canSort: true,
    isEnd: true,
    cell: (run) => (
      <Quiet>
        <Time at={run.updatedAt} />
      </Quiet>
    ),
  },
];

/** Two lines, for screens without room for columns. */
export function PhoneRow({ run }: { run: RunView }) {
  return (
    <div className={styles.card}>
      <span className={styles.task}>{visibleTitle(run.title)}</span>
      <RunStatus view={run} />
      <span className={styles.quiet}>
        {[visibleText(run.agent), ...(run.workedMs === 0 ? [] : [cost(run.costUsd), workedFor(run.workedMs)])].join(" · ")}
      </span>
      <span className={`${styles.quiet} ${styles.end}`}>
        <Time at={run.updatedAt} />
      </span>
    </div>
  );
}

function Title({ run }: { run: RunView }) {
  return (
    <span className={styles.title}>
      <span className={styles.task} title={visibleLines(run.title)}>
        {visibleTitle(run.title)}
      </span>
      {run.name !== null && <span className={styles.name}>{visibleText(run.name)}</span>}
      {givenLabels(run).map(([key, value]) => (
        <span key={key} className={styles.label}>
          {visibleText(`${key}=${value}`)}
        </span>
      ))}
    </span>
  );
}

function Quiet({ children }: { children: ReactNode }) {
  return <span className={styles.quiet}>{children}</span>;
}

/** Omits the labels that the station sets for itself. */
const givenLabels = ({ labels }: Pick<RunView, "labels">) => Object.entries(labels).filter(([key]) => !isStationLabel("run", key));
