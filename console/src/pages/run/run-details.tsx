import { useQueryClient } from "@tanstack/react-query";
import { Circle, CircleCheck, CircleDot } from "lucide-react";
import { lazy, Suspense } from "react";
import { Link } from "wouter";
import { JOB_LABEL } from "../../../../src/contract/label/station-labels.ts";
import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import { putRun } from "../../data/queries.ts";
import { useStation } from "../../data/station.tsx";
import { kindNames, workOfStream } from "../../data/work-item.ts";
import { cost, tokens } from "../../parts/amounts.ts";
import { Copy } from "../../parts/copy.tsx";
import { Fact, Facts, Section } from "../../parts/facts.tsx";
import { LabelEditor } from "../../parts/label-editor.tsx";
import { duration, Time } from "../../parts/time.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import styles from "./run-details.module.css";
import type { Timeline } from "./timeline.ts";
import { ChangedFileLine } from "./tool-card.tsx";

const SpentChart = lazy(() => import("./spent-chart.tsx"));
const FILES_SHOWN = 50;

/** The facts about a run besides its timeline: progress, spending, changed files. */
export function RunDetails({ view, timeline, version }: { view: RunView; timeline: Timeline; version: number }) {
  const files = [...timeline.files.values()];
  const work = workOfStream(view.labels[JOB_LABEL] ?? "");
  return (
    <aside className={styles.details} aria-label="About this run">
      <Section title="Task">
        <p className={styles.task}>{visibleLines(view.title)}</p>
      </Section>
      {timeline.todo.length > 0 && <Phases todo={timeline.todo} />}
      <Section title="Budgets">
        <BudgetBars view={view} />
      </Section>
      {timeline.spent.length > 1 && (
        <Section title="Tokens and cost">
          <Suspense fallback={<div className={styles.chart} />}>
            <SpentChart spent={timeline.spent} version={version} />
          </Suspense>
        </Section>
      )}
      {files.length > 0 && (
        <Section title={`Files changed: ${files.length}`}>
          <ul className={styles.files}>
            {files.slice(0, FILES_SHOWN).map((file) => (
              <ChangedFileLine key={file.path} file={file} />
            ))}
          </ul>
        </Section>
      )}
      <Section title="About">
        <Facts>
          <Fact name="Run">
            <span className={styles.id}>
              <code>{view.run}</code> <Copy text={view.run} what="run ID" />
            </span>
          </Fact>
          {view.name !== null && <Fact name="Name">{visibleText(view.name)}</Fact>}
          <Fact name="Agent">{visibleText(view.agent)}</Fact>
          <Fact name="Model">{visibleText(view.model)}</Fact>
          {view.sandbox !== null && (
            <Fact name="Sandbox">
              <Link href={`/sandboxes/${view.sandbox.id}`} className="link">
                {view.sandbox.id}
              </Link>{" "}
              {view.sandbox.runtime}
            </Fact>
          )}
          {view.folder !== null && (
            <Fact name="Folder">
              <code>{visibleText(view.folder)}</code>
            </Fact>
          )}
          {view.parent !== null && (
            <Fact name="Part of">
              <Link href={`/runs/${view.parent.run}`} className="link">
                {view.parent.run}
              </Link>
            </Fact>
          )}
          {work !== null && (
            <Fact name="Part of">
              <Link href={work.href} className="link">
                {work.kind === "run" ? "run" : kindNames[work.kind].one} {work.id}
              </Link>
            </Fact>
          )}
          <Fact name="Started">
            <Time at={view.createdAt} />
          </Fact>
          <Fact name="Owner">{visibleText(view.owner)}</Fact>
        </Facts>
      </Section>
      <Section title="Labels">
        <RunLabels view={view} />
      </Section>
    </aside>
  );
}

function RunLabels({ view: { run, labels } }: { view: RunView }) {
  const station = useStation();
  const queries = useQueryClient();
  return <LabelEditor kind="run" labels={labels} onChange={async (changes) => putRun(queries, await station.runs.label(run, changes))} />;
}

const todoIcons = { pending: Circle, in_progress: CircleDot, completed: CircleCheck };

function Phases({ todo }: { todo: Timeline["todo"] }) {
  const done = todo.filter(({ status }) => status === "completed").length;
  return (
    <Section title="Plan">
      <Bar name={`${done} of ${todo.length} done`} part={done / todo.length} />
      <ul className={styles.files}>
        {todo.map(({ id, text, status }) => {
          const Icon = todoIcons[status];
          return (
            <li key={id} className={styles.todo} data-status={status}>
              <Icon aria-label={status.replaceAll("_", " ")} />
              {visibleText(text)}
            </li>
          );
        })}
      </ul>
    </Section>
  );
}

function BudgetBars({ view }: { view: RunView }) {
  const { budgets, bounds, usage } = view;
  const spentTokens = usage.inputTokens + usage.outputTokens;
  const steps = budgets.steps ?? bounds.steps;
  const timeMs = budgets.timeMs ?? bounds.timeMs;
  return (
    <>
      <Bar name={`${view.steps} of ${steps} steps`} part={view.steps / steps} />
      <Bar name={`${duration(view.workedMs)} of ${duration(timeMs)}`} part={view.workedMs / timeMs} />
      {budgets.tokens === undefined ? (
        <p className={styles.bar}>{tokens(spentTokens)} tokens</p>
      ) : (
        <Bar name={`${tokens(spentTokens)} of ${tokens(budgets.tokens)} tokens`} part={spentTokens / budgets.tokens} />
      )}
      {budgets.costUsd === undefined ? (
        <p className={styles.bar}>{cost(view.costUsd)}</p>
      ) : (
        <Bar name={`${cost(view.costUsd)} of ${cost(budgets.costUsd)}`} part={(view.costUsd ?? 0) / budgets.costUsd} />
      )}
    </>
  );
}

function Bar({ name, part }: { name: string; part: number }) {
  const percent = Math.min(100, Math.max(0, part * 100));
  return (
    <div className={styles.bar}>
      <span>{name}</span>
      <meter className="visually-hidden" min={0} max={100} value={percent} aria-label={name} />
      <div className={styles.track} aria-hidden="true">
        <div
          className={styles.fill}
          data-level={percent >= 100 ? "full" : percent >= 80 ? "high" : "fine"}
          style={{ inlineSize: `${percent}%` }}
        />
      </div>
    </div>
  );
}
