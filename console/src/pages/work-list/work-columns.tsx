import { GitMerge, type LucideIcon, Notebook, Send, Trophy, Workflow } from "lucide-react";
import { kindNames, type WorkItem, type WorkKind } from "../../data/work-item.ts";
import { Badge } from "../../parts/badge.tsx";
import type { Column } from "../../parts/list.tsx";
import { Time, Until } from "../../parts/time.tsx";
import { visibleText } from "../../parts/visible-text.ts";
import styles from "./work.module.css";

export const kindIcons: Readonly<Record<WorkKind, LucideIcon>> = {
  workflow: Workflow,
  spec: Notebook,
  ship: Send,
  merge: GitMerge,
  best: Trophy,
};
const ABOUT_MAX = 300;

export const workColumns: readonly Column<WorkItem>[] = [
  { id: "status", name: "Status", width: "104px", canSort: true, cell: ({ tone, word }) => <Badge tone={tone}>{word}</Badge> },
  { id: "kind", name: "Kind", width: "92px", canSort: true, cell: ({ kind }) => <KindWord kind={kind} /> },
  { id: "title", name: "Title", width: "minmax(160px, 1fr)", canSort: true, cell: (item) => <Title item={item} /> },
  { id: "about", name: "Waiting for", width: "minmax(120px, 1fr)", cell: (item) => <About item={item} /> },
  {
    id: "owner",
    name: "Owner",
    width: "84px",
    canSort: true,
    cell: ({ owner }) => <span className={styles.quiet}>{visibleText(owner)}</span>,
  },
  {
    id: "updated",
    name: "Changed",
    width: "76px",
    canSort: true,
    isEnd: true,
    cell: ({ updatedAt }) => (
      <span className={styles.quiet}>
        <Time at={updatedAt} />
      </span>
    ),
  },
];

/** Two lines, for screens without room for columns. */
export function PhoneRow({ item }: { item: WorkItem }) {
  return (
    <div className={styles.card}>
      <Title item={item} />
      <Badge tone={item.tone}>{item.word}</Badge>
      <span className={styles.phoneAbout}>
        <KindWord kind={item.kind} /> <About item={item} />
      </span>
      <span className={`${styles.quiet} ${styles.end}`}>
        <Time at={item.updatedAt} />
      </span>
    </div>
  );
}

function KindWord({ kind }: { kind: WorkKind }) {
  const Icon = kindIcons[kind];
  return (
    <span className={styles.kind}>
      <Icon aria-hidden="true" />
      {kindNames[kind].one}
    </span>
  );
}

function Title({ item: { title, name } }: { item: WorkItem }) {
  return (
    <span className={styles.title} title={visibleText(title)}>
      {visibleText(title)}
      {name !== null && <span className={styles.name}>{visibleText(name)}</span>}
    </span>
  );
}

function About({ item: { about, due } }: { item: WorkItem }) {
  const text = visibleText(about.slice(0, ABOUT_MAX).replaceAll("\n", " "));
  return (
    <span className={styles.quiet} title={text}>
      {text}
      {due !== null && (
        <>
          {text !== "" && ", "}
          <Until at={due} />
        </>
      )}
    </span>
  );
}
