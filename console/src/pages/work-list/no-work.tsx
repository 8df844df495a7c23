import { Empty } from "../../parts/empty.tsx";
import type { WorkKind } from "../../station/work-item.ts";
import styles from "./work.module.css";

/** What each of them is, and the command that makes one. */
const about: Readonly<Record<WorkKind, { title: string; text: string; command: string }>> = {
  workflow: {
    title: "Workflows",
    text: "Steps of agents, commands and people, as a file says them.",
    command: "caisson workflow run review.yaml --detach",
  },
  spec: {
    title: "Specs",
    text: "From an idea to tasks that are done, phase by phase, with your word between.",
    command: 'caisson spec new "Count words" --name words; caisson spec run words',
  },
  ship: {
    title: "Ships",
    text: "The changes of a run that ended, on their way to a branch and a pull request.",
    command: "caisson ship RUN",
  },
  merge: {
    title: "Merges",
    text: "What several sessions changed that began at the same place, as one.",
    command: "caisson merge SESSION SESSION",
  },
};

export function NoWork({ kind }: { kind: WorkKind | null }) {
  const shown = kind === null ? Object.values(about) : [about[kind]];
  return (
    <Empty title={kind === null ? "No work yet" : `No ${about[kind].title.toLowerCase()} yet`}>
      <p>What is more than one run is here, live, once somebody began it in a terminal or over the API:</p>
      <dl className={styles.commands}>
        {shown.map(({ title, text, command }) => (
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
