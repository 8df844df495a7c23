import { useQueryClient } from "@tanstack/react-query";
import { Link } from "wouter";
import type { BestView } from "../../../../src/contract/best/best-verbs.ts";
import { useFollowedEvents } from "../../data/followed-events.ts";
import { useStation } from "../../data/station.tsx";
import { jobStatus } from "../../data/work-item.ts";
import { lookAtWorkAgain, workKeys } from "../../data/work-queries.ts";
import { cost } from "../../parts/amounts.ts";
import { Copy } from "../../parts/copy.tsx";
import { EventList } from "../../parts/event-list.tsx";
import { Fact, Facts, Section } from "../../parts/facts.tsx";
import { Side, TwoColumns } from "../../parts/two-columns.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { JobFacts } from "../job/job-facts.tsx";
import { JobFrame, JobPage } from "../job/job-page.tsx";
import { budgetText } from "./attempt-words.ts";
import { Attempts } from "./attempts.tsx";
import styles from "./best.module.css";
import { BestActions } from "./best-actions.tsx";

export default function Best() {
  const { bests } = useStation();
  return (
    <JobPage kind="best" get={bests.get}>
      {(view, word) => <OpenBest view={view} word={word} />}
    </JobPage>
  );
}

function OpenBest({ view, word }: { view: BestView; word: string }) {
  const station = useStation();
  const queries = useQueryClient();
  const { id, finish, text } = view;
  const events = useFollowedEvents({
    queryKey: workKeys.of("best", word),
    follow: (options) => station.bests.events(id, { ...options, follow: true }),
    isOpen: finish === null,
  });
  const onDone = (next: BestView) => {
    queries.setQueryData(workKeys.of("best", word), next);
    lookAtWorkAgain(queries);
  };
  return (
    <JobFrame kind="best" status={jobStatus(view)} title={view.title} actions={<BestActions view={view} onDone={onDone} />}>
      <TwoColumns label="Attempts and events" side={<About view={view} />}>
        {finish === "failed" && text !== null && <p className={styles.error}>{visibleLines(text)}</p>}
        {view.paused !== null && <p className={styles.paused}>Paused: {visibleLines(view.paused.text)}</p>}
        <Section title="Attempts">
          <Attempts view={view} />
        </Section>
        <Section title="Events">
          <EventList label="Events" events={events.map((event) => ({ ...event, key: event.seq }))} />
        </Section>
      </TwoColumns>
    </JobFrame>
  );
}

function About({ view }: { view: BestView }) {
  const { id, task, grade, judge, concurrency, budgets, costUsd, winner } = view;
  return (
    <Side label="About this best-of">
      <Section title="Task">
        <p className={styles.task}>{visibleLines(task)}</p>
      </Section>
      <Section title="About">
        <Facts>
          <Fact name="ID">
            <code>{id}</code> <Copy text={id} what="ID" />
          </Fact>
          <Fact name="Grader">{grade === null ? "none: done counts" : <code>{visibleText(grade)}</code>}</Fact>
          {judge !== null && <Fact name="Judge">{visibleText(judge)}</Fact>}
          <Fact name="At a time">{concurrency}</Fact>
          <Fact name="Budget">{budgetText(budgets)}</Fact>
          <Fact name="Cost">{cost(costUsd)}</Fact>
          <JobFacts view={view} />
        </Facts>
      </Section>
      {winner !== null && (
        <Section title="Use the result">
          <p>
            <Link href={`/runs/${winner.run}?tab=changes`} className="link">
              Review and apply
            </Link>{" "}
            the changes of the promoted run. In its folder, <code>caisson diff</code> and <code>caisson apply</code> mean it.
          </p>
        </Section>
      )}
    </Side>
  );
}
