import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Circle, CircleAlert, CircleCheck } from "lucide-react";
import { useCallback } from "react";
import { Link, useParams } from "wouter";
import type { MergeView } from "../../../../src/contract/merge-verbs.ts";
import { plural } from "../../parts/amounts.ts";
import { Badge } from "../../parts/badge.tsx";
import { Copy } from "../../parts/copy.tsx";
import { EventList } from "../../parts/event-list.tsx";
import { Fact, Facts, Section } from "../../parts/facts.tsx";
import { NameLine } from "../../parts/name-line.tsx";
import { NotThere } from "../../parts/not-there.tsx";
import { Page } from "../../parts/page.tsx";
import { Side, TwoColumns } from "../../parts/two-columns.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { useFollowed } from "../../station/followed.ts";
import { useStation } from "../../station/station.tsx";
import { drivenStatus } from "../../station/work-item.ts";
import { lookAtWorkAgain, workKeys } from "../../station/work-queries.ts";
import { DrivenFacts } from "../work-list/driven-facts.tsx";
import { Conflict } from "./conflict.tsx";
import styles from "./merge.module.css";
import { MergeActions } from "./merge-actions.tsx";

export default function Merge() {
  const { merge = "" } = useParams<{ merge: string }>();
  return <MergePage key={merge} word={merge} />;
}

function MergePage({ word }: { word: string }) {
  const station = useStation();
  const { data, error, refetch } = useQuery({
    queryKey: workKeys.merge(word),
    queryFn: ({ signal }) => station.merges.get(word, { signal }),
  });
  if (data === undefined) return <NotThere what="merge" error={error} onRetry={() => void refetch()} />;
  return <OpenMerge view={data} word={word} />;
}

function OpenMerge({ view, word }: { view: MergeView; word: string }) {
  const station = useStation();
  const queries = useQueryClient();
  const { id } = view;
  const events = useFollowed({
    queryKey: workKeys.merge(word),
    follow: useCallback(
      (options: { fromSeq: number; signal: AbortSignal }) => station.merges.events(id, { ...options, follow: true }),
      [station, id],
    ),
    isOpen: view.finish === null,
  });
  const onDone = (next: MergeView) => {
    queries.setQueryData(workKeys.merge(word), next);
    lookAtWorkAgain(queries);
  };
  const { word: state, tone } = drivenStatus(view);
  const title = visibleText(view.title);
  return (
    <Page
      title={`${state}: ${title}`}
      name={
        <NameLine up={{ href: "/work?kind=merge", label: "Merges" }} name={title}>
          <Badge tone={tone}>{state}</Badge>
        </NameLine>
      }
      actions={<MergeActions view={view} onDone={onDone} />}
    >
      <TwoColumns label="Sessions and events" side={<About view={view} />}>
        {view.finish === "failed" && view.text !== null && <p className={styles.error}>{visibleLines(view.text)}</p>}
        <Conflict key={view.conflict?.attempt ?? 0} view={view} onDone={onDone} />
        <Sessions view={view} />
        <Section title="What happened">
          <EventList label="Events of the merge" events={events.map((event) => ({ ...event, key: event.seq }))} />
        </Section>
      </TwoColumns>
    </Page>
  );
}

const icons = { in: CircleCheck, conflict: CircleAlert, coming: Circle } as const;
const words = { in: "merged", conflict: "in conflict", coming: "to come" } as const;

/** In the order in which they are merged, once that is known. */
function Sessions({ view: { order, sessions, merged, conflict, finish } }: { view: MergeView }) {
  return (
    <Section title={order === null ? plural(sessions.length, "session") : `${plural(sessions.length, "session")}, fewest conflicts first`}>
      <ol className={styles.sessions} aria-label="Sessions">
        {(order ?? sessions).map((session) => {
          const isStuck = conflict?.with === session && finish === null;
          const state = merged.includes(session) ? "in" : isStuck ? "conflict" : "coming";
          const Icon = icons[state];
          return (
            <li key={session} data-state={state}>
              <Icon aria-hidden="true" />
              <SessionName session={session} />
              <span className={styles.state}>{words[state]}</span>
            </li>
          );
        })}
      </ol>
    </Section>
  );
}

/** The session of a run is called as the run is. */
function SessionName({ session }: { session: string }) {
  const name = <code>{visibleText(session)}</code>;
  if (!/^run_[a-z2-7]{12}$/.test(session)) return name;
  return (
    <Link href={`/runs/${session}?tab=changes`} className="link">
      {name}
    </Link>
  );
}

const policies = { agent: "an agent resolves it", ask: "a person is asked", stop: "the merge ends" } as const;

function About({ view }: { view: MergeView }) {
  return (
    <Side label="About this merge">
      <Section title="About">
        <Facts>
          <Fact name="Id">
            <code>{view.id}</code> <Copy text={view.id} what="id" />
          </Fact>
          {view.result !== null && (
            <Fact name="Result">
              <code>{visibleText(view.result)}</code> <Copy text={view.result} what="the session's id" />
            </Fact>
          )}
          <Fact name="A conflict">{policies[view.conflicts]}</Fact>
          <DrivenFacts view={view} />
        </Facts>
      </Section>
      {view.result !== null && (
        <Section title="What came of it">
          <p>
            <code>caisson diff {visibleText(view.result)}</code> shows it, <code>caisson apply {visibleText(view.result)}</code> brings it
            to the folder.
          </p>
        </Section>
      )}
    </Side>
  );
}
