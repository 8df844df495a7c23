import { Trophy } from "lucide-react";
import { Link } from "wouter";
import type { BestAttemptView, BestView } from "../../../../src/contract/best/best-verbs.ts";
import { cost } from "../../parts/amounts.ts";
import { Badge } from "../../parts/badge.tsx";
import { Table, type TableColumn, type TableRow } from "../../parts/table.tsx";
import { workedFor } from "../../parts/time.tsx";
import { Value } from "../../parts/value.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { attemptState, gradeText } from "./attempt-words.ts";
import styles from "./best.module.css";

/** The attempts of a best-of as a ranked table. */
export function Attempts({ view }: { view: BestView }) {
  const isJudged = view.attempts.some(({ opinion }) => opinion !== null);
  const columns: TableColumn[] = [
    { name: "Attempt", onPhone: "title" },
    { name: "State", onPhone: "beside" },
    { name: "Grade" },
    ...(isJudged ? [{ name: "Judge" }] : []),
    { name: "Cost" },
    { name: "Time" },
    { name: "Run" },
    { name: "Why" },
  ];
  return <Table label="Attempts" columns={columns} rows={view.attempts.map((attempt) => rowOf(attempt, { view, isJudged }))} />;
}

function rowOf(attempt: BestAttemptView, { view, isJudged }: { view: BestView; isJudged: boolean }): TableRow {
  const { word, tone } = attemptState(attempt);
  return {
    key: String(attempt.attempt),
    cells: [
      <Name key="name" attempt={attempt} isPromoted={view.winner?.attempt === attempt.attempt} />,
      <Badge key="state" tone={tone}>
        {word}
      </Badge>,
      <Grade key="grade" attempt={attempt} />,
      ...(isJudged ? [attempt.opinion?.score ?? "–"] : []),
      <span key="cost" className={styles.short}>
        {cost(attempt.costUsd)}
      </span>,
      <span key="time" className={styles.short}>
        {workedFor(attempt.workedMs)}
      </span>,
      <RunLinks key="run" attempt={attempt} winner={view.winner?.run ?? null} />,
      hasReason(attempt) ? <Reason key="why" attempt={attempt} /> : null,
    ],
  };
}

function Name({ attempt: { attempt, place, model }, isPromoted }: { attempt: BestAttemptView; isPromoted: boolean }) {
  return (
    <span className={styles.name}>
      <span className={styles.place}>{place === null ? "–" : `${place}.`}</span>
      <span className={styles.attempt}>
        Attempt {attempt}
        {isPromoted && (
          <span className={styles.promoted}>
            <Trophy aria-hidden="true" />
            promoted
          </span>
        )}
      </span>
      {model !== null && (
        <span className={styles.model} title={visibleText(model)}>
          {visibleText(model)}
        </span>
      )}
    </span>
  );
}

function Grade({ attempt: { attempt, grade } }: { attempt: BestAttemptView }) {
  const text = gradeText(grade);
  if (grade === null || grade.text === "") return <span className={styles.short}>{text}</span>;
  return (
    <details className={styles.output}>
      <summary>{text}</summary>
      <Value label={`Output of the grader for attempt ${attempt}`} value={grade.text} />
    </details>
  );
}

function RunLinks({ attempt: { run }, winner }: { attempt: BestAttemptView; winner: string | null }) {
  if (run === null) return "–";
  return (
    <span className={styles.links}>
      <Link href={`/runs/${run}`} className="link">
        {run}
      </Link>
      {winner !== null && winner !== run && (
        <Link href={`/compare/${winner}/${run}`} className="link" aria-label={`Compare ${run} with the winner`}>
          compare
        </Link>
      )}
    </span>
  );
}

const hasReason = ({ text, why, opinion }: BestAttemptView) => (text ?? why) !== "" || (opinion?.why ?? "") !== "";

/** Why the attempt failed, or what decided its place; the judge's reason below. */
function Reason({ attempt: { text, why, opinion } }: { attempt: BestAttemptView }) {
  const reason = text ?? why;
  if (opinion === null || opinion.why === "") return visibleLines(reason);
  return (
    <>
      {visibleLines(reason)}
      <span className={styles.quiet}>{visibleLines(opinion.why)}</span>
    </>
  );
}
