import type { WorkKind } from "../../data/work-item.ts";
import { Empty } from "../../parts/empty.tsx";
import styles from "./work.module.css";

/** A description of each kind, and the command that starts one. */
const about: Readonly<Record<WorkKind, { title: string; text: string; command: string }>> = {
  workflow: {
    title: "Workflows",
    text: "Steps for agents, commands and people, defined in a file.",
    command: "caisson workflow run review.yaml --detach",
  },
  spec: {
    title: "Specs",
    text: "From an idea to finished tasks, phase by phase, with your approval in between.",
    command: 'caisson spec new "Count words" --name words; caisson spec run words',
  },
  ship: {
    title: "Ships",
    text: "The changes of a finished run, on their way to a branch and a pull request.",
    command: "caisson ship RUN",
  },
  merge: {
    title: "Merges",
    text: "The changes of several sessions that started from the same files, combined.",
    command: "caisson merge SESSION SESSION",
  },
  best: {
    title: "Best-ofs",
    text: "Several attempts at one task, graded and ranked; the best one is promoted.",
    command: 'caisson best "Make the tests pass" -n 4 --grade "npm test" --detach',
  },
};

export function NoWork({ kind }: { kind: WorkKind | null }) {
  const descriptions = kind === null ? Object.values(about) : [about[kind]];
  return (
    <Empty title={kind === null ? "No work yet" : `No ${about[kind].title.toLowerCase()} yet`}>
      <p>Work that consists of several runs appears here, live. Start it in a terminal or over the API:</p>
      <dl className={styles.commands}>
        {descriptions.map(({ title, text, command }) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd>{text}</dd>
            <dd>
              <code>{command}</code>
            </dd>
          </div>
        ))}
      </dl>
    </Empty>
  );
}
