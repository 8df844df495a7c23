import type { ReactNode } from "react";
import { Link } from "wouter";
import type { SpecView } from "../../../../src/contract/spec/spec-verbs.ts";
import { plural } from "../../parts/amounts.ts";
import { Empty } from "../../parts/empty.tsx";
import { Fact, Facts, Section } from "../../parts/facts.tsx";
import { GraphNode } from "../../parts/graph-node.tsx";
import type { NodeState } from "../../parts/graph-state.tsx";
import { LinkedGraph } from "../../parts/linked-graph.tsx";
import { Side, TwoColumns } from "../../parts/two-columns.tsx";
import { useIsPhone } from "../../parts/use-is-phone.ts";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import styles from "./spec.module.css";
import { TaskDetails, TaskHead } from "./task-details.tsx";

type Task = SpecView["tasks"][number];
const states: Readonly<Record<Task["state"], NodeState>> = { waiting: "pending", running: "running", done: "completed", failed: "failed" };

interface TasksProps {
  view: SpecView;
  /** The selected task. */
  chosen: string | null;
  onChoose(task: string | null): void;
  /** Shown above the graph. */
  children: ReactNode;
}

/** The tasks as a graph with their dependencies and states. The side shows the selected task, or all of them. */
export function Tasks({ view, chosen, onChoose, children }: TasksProps) {
  const isPhone = useIsPhone();
  const { tasks, merges } = view;
  const task = tasks.find(({ id }) => id === chosen) ?? null;
  const items = tasks.map((each) => ({ ...each, after: each.dependsOn, state: states[each.state] }));
  const details = (each: Task) => <TaskDetails view={view} task={each} onChoose={onChoose} />;
  return (
    <TwoColumns
      label="Spec tasks"
      side={
        task === null || isPhone ? (
          <AllTasks view={view} />
        ) : (
          <Side label={`Task ${visibleText(task.id)}`}>
            <TaskHead task={task} onClose={() => onChoose(null)} />
            {details(task)}
          </Side>
        )
      }
    >
      {children}
      {tasks.length === 0 && <Empty title="No tasks yet">They are written after the design, and run when everything is approved.</Empty>}
      <LinkedGraph
        label="Tasks"
        items={items}
        chosen={task?.id ?? null}
        nodeOf={({ id, title, state, finish, dependsOn }, isList) => (
          <GraphNode
            state={state}
            word={state === "failed" && finish !== null ? finish.replaceAll("_", " ") : undefined}
            name={visibleText(id)}
            about={visibleText(title)}
            linesMax={2}
            after={visibleText(dependsOn.join(", "))}
            isAfterShown={isList}
            isChosen={id === task?.id}
            onChoose={() => onChoose(id === task?.id ? null : id)}
          />
        )}
        detailsOf={({ id }) => {
          const own = tasks.find((each) => each.id === id);
          return (
            own !== undefined && (
              <section className={styles.inline} aria-label={`Task ${visibleText(id)}`}>
                {details(own)}
              </section>
            )
          );
        }}
      />
      {merges.length > 0 && <Merges merges={merges} />}
    </TwoColumns>
  );
}

/** The progress of all tasks, shown while no task is selected. */
function AllTasks({ view: { tasks, data, session } }: { view: SpecView }) {
  const count = (state: Task["state"]) => tasks.filter((task) => task.state === state).length;
  const planned = data.tasks?.tasks ?? [];
  const hours = planned.reduce((sum, task) => sum + task.hours, 0);
  const criticalPath = data.tasks?.criticalPath ?? [];
  return (
    <Side label="All tasks">
      <Facts>
        <Fact name="Done">
          {count("done")} of {tasks.length}
        </Fact>
        {count("running") > 0 && <Fact name="Running">{count("running")}</Fact>}
        {count("failed") > 0 && <Fact name="Failed">{count("failed")}</Fact>}
        {hours > 0 && <Fact name="Estimate">{hours} h</Fact>}
        {criticalPath.length > 0 && <Fact name="Critical path">{visibleText(criticalPath.join(" → "))}</Fact>}
        {session !== null && (
          <Fact name="Session">
            <code>{visibleText(session)}</code>
          </Fact>
        )}
      </Facts>
      {tasks.length > 0 && <p className={styles.quiet}>Choose a task to see its description, its run and its changes.</p>}
    </Side>
  );
}

function Merges({ merges }: Pick<SpecView, "merges">) {
  return (
    <Section title="Merged">
      <ul className={styles.list}>
        {merges.map(({ merge, sessions, session, text }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a merge is identified by its index.
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
