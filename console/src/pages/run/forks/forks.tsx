import { GitCompare } from "lucide-react";
import { useState } from "react";
import { Link } from "wouter";
import type { RunTimeline } from "../../../../../src/contract/run/run-timeline.ts";
import type { RunView } from "../../../../../src/contract/run/run-verbs.ts";
import { cost, plural } from "../../../parts/amounts.ts";
import { Badge } from "../../../parts/badge.tsx";
import { Button, ButtonLink } from "../../../parts/button.tsx";
import { Empty } from "../../../parts/empty.tsx";
import { Loading } from "../../../parts/loading.tsx";
import { Problem } from "../../../parts/problem.tsx";
import { Scroll } from "../../../parts/scroll.tsx";
import { Time } from "../../../parts/time.tsx";
import { visibleText } from "../../../parts/visible-text.ts";
import { statusOf } from "../../runs/run-status.tsx";
import { useRunTimeline } from "../steps/use-run-timeline.ts";
import { type FamilyRow, familyRows } from "./fork-tree.ts";
import styles from "./forks.module.css";

/** Deeper forks would have no room. Each row says where it comes from. */
const INDENT_MAX = 8;
const ROWS_MAX = 500;

/** The family of a run as a tree: where it comes from, its forks, and what rewinds took back. Two can be compared. */
export default function Forks({ view }: { view: RunView }) {
  const { data, error, refetch } = useRunTimeline(view);
  if (data === undefined) return error === null ? <Loading rows={6} /> : <Problem error={error} onRetry={() => void refetch()} />;
  return <Family view={view} timeline={data} />;
}

function Family({ view, timeline }: { view: RunView; timeline: RunTimeline }) {
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const rows = familyRows(view, timeline);
  if (rows.length === 1 && timeline.from === null) {
    return (
      <Empty title="No forks yet" action={<ButtonLink href={`/runs/${view.run}?tab=steps`}>Go to the steps</ButtonLink>}>
        Fork the run from any of its steps to try another way. What a rewind takes back also appears here.
      </Empty>
    );
  }
  // A third choice replaces the older one.
  const toggle = (run: string) => setChosen(chosen.includes(run) ? chosen.filter((each) => each !== run) : [...chosen.slice(-1), run]);
  const [one, other] = rows.filter(({ run }) => chosen.includes(run));
  const oldest = rows[0];
  return (
    <Scroll className={styles.family} label="Forks">
      <div className={styles.head}>
        {one !== undefined && other !== undefined ? (
          <ButtonLink look="main" icon={<GitCompare />} href={`/compare/${one.run}/${other.run}`}>
            Compare
          </ButtonLink>
        ) : (
          <Button look="main" icon={<GitCompare />} disabled>
            Compare
          </Button>
        )}
        <span className={styles.quiet}>{chosen.length === 2 ? "Two runs are chosen." : "Choose two runs to compare."}</span>
      </div>
      {oldest !== undefined && oldest.from !== null && (
        <p className={styles.quiet}>
          {oldest.run} was forked from {oldest.from.run} after step {oldest.from.step}. That run was removed.
        </p>
      )}
      <ul className={styles.tree} aria-label="Fork tree">
        {rows.slice(0, ROWS_MAX).map((row) => (
          <li key={row.run} style={{ marginInlineStart: `calc(${Math.min(row.depth, INDENT_MAX)} * var(--indent))` }}>
            <Row row={row} model={oldest?.model ?? ""} isChosen={chosen.includes(row.run)} onToggle={() => toggle(row.run)} />
          </li>
        ))}
      </ul>
      {rows.length > ROWS_MAX && <p className={styles.quiet}>{rows.length - ROWS_MAX} more are in the list of runs.</p>}
    </Scroll>
  );
}

interface RowProps {
  row: FamilyRow;
  /** The model of the oldest run. Only others are shown. */
  model: string;
  isChosen: boolean;
  onToggle(): void;
}

function Row({ row, model, isChosen, onToggle }: RowProps) {
  const name = visibleText(row.name ?? row.run);
  const { word, tone } = statusOf({
    ...{ status: row.status as RunView["status"], finish: row.finish as RunView["finish"] },
    ...{ asked: [], health: "ok", paused: null },
  });
  return (
    <div className={styles.row} data-current={row.isCurrent}>
      <input type="checkbox" aria-label={`Compare ${name}`} checked={isChosen} onChange={onToggle} />
      <div className={styles.text}>
        <span className={styles.name}>
          {row.isCurrent ? (
            <strong aria-current="page">{name}</strong>
          ) : (
            <Link href={`/runs/${row.run}?tab=steps`} className="link">
              {name}
            </Link>
          )}
          {row.isCurrent && <span className={styles.quiet}>this run</span>}
          <Badge tone={tone}>{word}</Badge>
          {row.isTail && <span className={styles.tail}>taken back by a rewind</span>}
        </span>
        <span className={styles.quiet}>
          {row.from !== null && <>after step {row.from.step} · </>}
          {plural(row.steps, "step")} · {row.isTail && row.costUsd === 0 ? "cost counted by the rewound run" : cost(row.costUsd)} ·{" "}
          <Time at={row.createdAt} />
          {row.model !== model && <> · {visibleText(row.model)}</>}
        </span>
      </div>
    </div>
  );
}
