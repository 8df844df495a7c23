import { X } from "lucide-react";
import { Link } from "wouter";
import type { SpecView } from "../../../../src/contract/spec/spec-verbs.ts";
import { plural } from "../../parts/amounts.ts";
import { Button } from "../../parts/button.tsx";
import { Fact, Facts, Section } from "../../parts/facts.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import styles from "./spec.module.css";

type Task = SpecView["tasks"][number];
const FILES_SHOWN = 40;

export function TaskHead({ task: { id, title }, onClose }: { task: Task; onClose(): void }) {
  return (
    <header className={styles.sideHead}>
      <h2>
        {visibleText(id)} {visibleText(title)}
      </h2>
      <Button look="plain" label="Back to all tasks" icon={<X />} onClick={onClose} />
    </header>
  );
}

/** The details of a task: its description, dependencies, run and changes. */
export function TaskDetails({ view, task, onChoose }: { view: SpecView; task: Task; onChoose(task: string): void }) {
  const { id, dependsOn, run, session, changed, finish } = task;
  const planned = view.data.tasks?.tasks.find((each) => each.id === id);
  const next = view.tasks.filter((each) => each.dependsOn.includes(id)).map((each) => each.id);
  return (
    <>
      {planned !== undefined && planned.description !== "" && <p className={styles.words}>{visibleLines(planned.description)}</p>}
      <Facts>
        <Fact name="Depends on">
          <TaskNames names={dependsOn} onChoose={onChoose} />
        </Fact>
        <Fact name="Blocks">
          <TaskNames names={next} onChoose={onChoose} />
        </Fact>
        {planned !== undefined && <Fact name="Estimate">{planned.hours} h</Fact>}
        {planned !== undefined && planned.requirements.length > 0 && (
          <Fact name="Requirements">{visibleText(planned.requirements.join(", "))}</Fact>
        )}
        {run !== null && (
          <Fact name="Run">
            <Link href={`/runs/${run}`} className="link">
              {run}
            </Link>
            {finish !== null && finish !== "done" && `, ${finish.replaceAll("_", " ")}`}
          </Fact>
        )}
        {session !== null && (
          <Fact name="Session">
            <code>{visibleText(session)}</code>
          </Fact>
        )}
      </Facts>
      {run !== null && changed.length > 0 && (
        <Section title="Changed">
          <Link href={`/runs/${run}?tab=changes`} className="link">
            {plural(changed.length, "file")}
          </Link>
          <ul className={styles.changed}>
            {changed.slice(0, FILES_SHOWN).map((path) => (
              <li key={path}>
                <code>{visibleText(path)}</code>
              </li>
            ))}
            {changed.length > FILES_SHOWN && <li className={styles.quiet}>and {changed.length - FILES_SHOWN} more</li>}
          </ul>
        </Section>
      )}
    </>
  );
}

function TaskNames({ names, onChoose }: { names: readonly string[]; onChoose(task: string): void }) {
  if (names.length === 0) return <span className={styles.quiet}>none</span>;
  return [...new Set(names)].map((name) => (
    <button key={name} type="button" className={styles.taskName} onClick={() => onChoose(name)}>
      {visibleText(name)}
    </button>
  ));
}
