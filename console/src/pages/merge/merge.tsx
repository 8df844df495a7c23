import { useQueryClient } from "@tanstack/react-query";
import { Circle, CircleAlert, CircleCheck } from "lucide-react";
import { Link } from "wouter";
import type { MergeView } from "../../../../src/contract/merge/merge-verbs.ts";
import { useFollowedEvents } from "../../data/followed-events.ts";
import { useStation } from "../../data/station.tsx";
import { jobStatus } from "../../data/work-item.ts";
import { lookAtWorkAgain, workKeys } from "../../data/work-queries.ts";
import { plural } from "../../parts/amounts.ts";
import { Copy } from "../../parts/copy.tsx";
import { EventList } from "../../parts/event-list.tsx";
import { Fact, Facts, Section } from "../../parts/facts.tsx";
import { Side, TwoColumns } from "../../parts/two-columns.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { JobFacts } from "../job/job-facts.tsx";
import { JobFrame, JobPage } from "../job/job-page.tsx";
import { Conflict } from "./conflict.tsx";
import styles from "./merge.module.css";
import { MergeActions } from "./merge-actions.tsx";

export default function Merge() {
  const { merges } = useStation();
  return (
    <JobPage kind="merge" get={merges.get}>
      {(view, word) => <OpenMerge view={view} word={word} />}
    </JobPage>
  );
}

function OpenMerge({ view, word }: { view: MergeView; word: string }) {
  const station = useStation();
  const queries = useQueryClient();
  const { id } = view;
  const events = useFollowedEvents({
    queryKey: workKeys.of("merge", word),
    follow: (options) => station.merges.events(id, { ...options, follow: true }),
    isOpen: view.finish === null,
  });
  const onDone = (next: MergeView) => {
    queries.setQueryData(workKeys.of("merge", word), next);
    lookAtWorkAgain(queries);
  };
  return (
    <JobFrame kind="merge" status={jobStatus(view)} title={view.title} actions={<MergeActions view={view} onDone={onDone} />}>
      <TwoColumns label="Sessions and events" side={<About view={view} />}>
        {view.finish === "failed" && view.text !== null && <p className={styles.error}>{visibleLines(view.text)}</p>}
        <Conflict key={view.conflict?.attempt ?? 0} view={view} onDone={onDone} />
        <Sessions view={view} />
        <Section title="Events">
          <EventList label="Events" events={events.map((event) => ({ ...event, key: event.seq }))} />
        </Section>
      </TwoColumns>
    </JobFrame>
  );
}

const icons = { in: CircleCheck, conflict: CircleAlert, coming: Circle } as const;
const words = { in: "merged", conflict: "in conflict", coming: "pending" } as const;

/** Lists the sessions, in merge order as soon as it is known. */
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

/** Links to the run if the session belongs to one: both have the same id. */
function SessionName({ session }: { session: string }) {
  const name = <code>{visibleText(session)}</code>;
  if (!/^run_[a-z2-7]{12}$/.test(session)) return name;
  return (
    <Link href={`/runs/${session}?tab=changes`} className="link">
      {name}
    </Link>
  );
}

const policies = { agent: "an agent resolves it", ask: "a person decides", stop: "the merge ends" } as const;

function About({ view }: { view: MergeView }) {
  return (
    <Side label="About this merge">
      <Section title="About">
        <Facts>
          <Fact name="ID">
            <code>{view.id}</code> <Copy text={view.id} what="ID" />
          </Fact>
          {view.result !== null && (
            <Fact name="Result">
              <code>{visibleText(view.result)}</code> <Copy text={view.result} what="session ID" />
            </Fact>
          )}
          <Fact name="On conflict">{policies[view.conflicts]}</Fact>
          <JobFacts view={view} />
        </Facts>
      </Section>
      {view.result !== null && (
        <Section title="Use the result">
          <p>
            <code>caisson diff {visibleText(view.result)}</code> shows it; <code>caisson apply {visibleText(view.result)}</code> applies it
            to the folder.
          </p>
        </Section>
      )}
    </Side>
  );
}
