import { useState } from "react";
import { Link } from "wouter";
import type { SpecView } from "../../../../src/contract/spec-verbs.ts";
import { plural } from "../../parts/amounts.ts";
import { Badge, type Tone } from "../../parts/badge.tsx";
import { Empty } from "../../parts/empty.tsx";
import { Section } from "../../parts/facts.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { taskLevels } from "./phase-text.ts";
import styles from "./spec.module.css";

type Task = SpecView["tasks"][number];
const tones: Readonly<Record<Task["state"], Tone>> = { waiting: "idle", running: "busy", done: "good", failed: "bad" };
const FILES_SHOWN = 4;

/** The tasks from left to right, each after those that it needs, with the run that does it; then how they were merged. */
export function Tasks({ view }: { view: SpecView }) {
  const [pointed, setPointed] = useState<Task | null>(null);
  if (view.tasks.length === 0)
    return <Empty title="No tasks yet">They are written after the design, and done when all of it is agreed to.</Empty>;
  const near = new Set(pointed === null ? [] : [pointed.id, ...pointed.dependsOn]);
  return (
    <>
      <ol className={styles.levels} aria-label="Tasks">
        {taskLevels(view.tasks).map((level, index) => (
          <li key={level[0]?.id}>
            <p className={styles.level}>{index === 0 ? "At first" : `After those, ${index + 1}`}</p>
            {level.map((task) => (
              <TaskCard key={task.id} task={task} isNear={near.has(task.id)} onPoint={setPointed} />
            ))}
          </li>
        ))}
      </ol>
      {view.merges.length > 0 && <Merges merges={view.merges} />}
    </>
  );
}

function TaskCard({ task, isNear, onPoint }: { task: Task; isNear: boolean; onPoint(task: Task | null): void }) {
  const { id, title, state, dependsOn, run, session, changed, finish } = task;
  return (
    <article className={styles.task} data-near={isNear} onPointerEnter={() => onPoint(task)} onPointerLeave={() => onPoint(null)}>
      <header>
        <code className={styles.id}>{visibleText(id)}</code>
        <Badge tone={tones[state]}>{state === "failed" && finish !== null ? finish.replaceAll("_", " ") : state}</Badge>
      </header>
      <h3>{visibleText(title)}</h3>
      {dependsOn.length > 0 && <p className={styles.quiet}>after {visibleText(dependsOn.join(", "))}</p>}
      {run !== null && (
        <p>
          <Link href={`/runs/${run}`} className="link">
            {run}
          </Link>
          {session !== null && <span className={styles.quiet}> in {visibleText(session)}</span>}
        </p>
      )}
      {run !== null && changed.length > 0 && (
        <p className={styles.files}>
          <Link href={`/runs/${run}?tab=changes`} className="link">
            {plural(changed.length, "file")}
          </Link>
          : {visibleText(changed.slice(0, FILES_SHOWN).join(", "))}
          {changed.length > FILES_SHOWN && ", …"}
        </p>
      )}
    </article>
  );
}

function Merges({ merges }: Pick<SpecView, "merges">) {
  return (
    <Section title="Merged">
      <ul className={styles.list}>
        {merges.map(({ merge, sessions, session, text }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a merge is its place.
          <li key={index}>
            {merge === null ? (
              "A merge"
            ) : (
              <Link href={`/merges/${merge}`} className="link">
                {merge}
              </Link>
            )}{" "}
            of {plural(sessions.length, "session")}
            {session !== null && <> into {visibleText(session)}</>}
            {text !== "" && text !== session && <p className={styles.note}>{visibleLines(text)}</p>}
          </li>
        ))}
      </ul>
    </Section>
  );
}
