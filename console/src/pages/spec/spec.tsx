import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { useParams, useSearchParams } from "wouter";
import { phases } from "../../../../src/contract/spec.ts";
import type { SpecView } from "../../../../src/contract/spec-verbs.ts";
import { Ask } from "../../parts/ask.tsx";
import { Badge } from "../../parts/badge.tsx";
import { EventList } from "../../parts/event-list.tsx";
import { useFilterParams } from "../../parts/filter-params.ts";
import { NameLine } from "../../parts/name-line.tsx";
import { NotThere } from "../../parts/not-there.tsx";
import { Page } from "../../parts/page.tsx";
import { Scroll } from "../../parts/scroll.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { useFollowed } from "../../station/followed.ts";
import { useStation } from "../../station/station.tsx";
import { specStatus } from "../../station/work-item.ts";
import { lookAtWorkAgain, workKeys } from "../../station/work-queries.ts";
import { Coverage } from "./coverage.tsx";
import { Document } from "./document.tsx";
import { PhaseContent } from "./phase-content.tsx";
import { phaseTitles } from "./phase-text.ts";
import { Phases } from "./phases.tsx";
import styles from "./spec.module.css";
import { SpecActions } from "./spec-actions.tsx";
import { Tasks } from "./tasks.tsx";
import { Versions } from "./versions.tsx";

export default function Spec() {
  const { spec = "" } = useParams<{ spec: string }>();
  return <SpecPage key={spec} word={spec} />;
}

function SpecPage({ word }: { word: string }) {
  const station = useStation();
  const { data, error, refetch } = useQuery({
    queryKey: workKeys.spec(word),
    queryFn: ({ signal }) => station.specs.get(word, { signal }),
  });
  if (data === undefined) return <NotThere what="spec" error={error} onRetry={() => void refetch()} />;
  return <OpenSpec view={data} word={word} />;
}

const tabs = ["phases", "document", "versions", "tasks", "coverage", "events"] as const;

function OpenSpec({ view, word }: { view: SpecView; word: string }) {
  const station = useStation();
  const queries = useQueryClient();
  const [params, change] = useFilterParams();
  const [search] = useSearchParams();
  const { spec } = view;
  const events = useFollowed({
    queryKey: workKeys.spec(word),
    follow: useCallback(
      (options: { fromSeq: number; signal: AbortSignal }) => station.specs.events(spec, { ...options, follow: true }),
      [station, spec],
    ),
    isOpen: true,
  });
  const lookAgain = () => {
    void queries.invalidateQueries({ queryKey: workKeys.spec(word) });
    lookAtWorkAgain(queries);
  };
  const tab = tabs.find((each) => each === search.get("tab")) ?? "phases";
  const hrefOf = (each: (typeof tabs)[number]) => `/specs/${word}${each === "phases" ? "" : `?tab=${each}`}`;
  const phase = phases.find((each) => each === params.get("phase")) ?? view.asked?.phase ?? view.phase;
  const status = specStatus(view);
  const title = visibleText(view.name ?? view.title);
  const gate = <Gate view={view} onDone={lookAgain} withContent={tab !== "phases" || phase !== view.asked?.phase} />;
  return (
    <Page
      title={`${status.word}: ${title}`}
      name={
        <NameLine up={{ href: "/work?kind=spec", label: "Specs" }} name={visibleText(view.title)}>
          <Badge tone={status.tone}>{status.word}</Badge>
        </NameLine>
      }
      actions={<SpecActions view={view} onDone={lookAgain} />}
    >
      <div className={styles.page}>
        <Tabs
          label="Parts of the spec"
          current={hrefOf(tab)}
          tabs={[
            { href: hrefOf("phases"), label: "Phases" },
            { href: hrefOf("document"), label: "Document" },
            { href: hrefOf("versions"), label: "Versions", count: view.versions.length },
            { href: hrefOf("tasks"), label: "Tasks", count: view.tasks.length },
            { href: hrefOf("coverage"), label: "Coverage" },
            { href: hrefOf("events"), label: "Events" },
          ]}
        />
        {tab === "tasks" && (
          <Tasks view={view} chosen={params.get("task")} onChoose={(task) => change({ task })}>
            {gate}
          </Tasks>
        )}
        {tab !== "tasks" && (
          <Scroll className={styles.part} label={`The ${tab} of the spec`}>
            {gate}
            {tab === "phases" && (
              <>
                <Idea view={view} />
                <Phases view={view} chosen={phase} onChoose={(next) => change({ phase: next })} />
              </>
            )}
            {tab === "document" && <Document view={view} />}
            {tab === "versions" && <Versions view={view} />}
            {tab === "coverage" && <Coverage coverage={view.coverage} />}
            {tab === "events" && <EventList label="Events of the spec" events={events.map((event) => ({ ...event, key: event.seq }))} />}
          </Scroll>
        )}
      </div>
    </Page>
  );
}

/** Where it waits for somebody to agree: what is agreed to stands beside the answers, or below them. */
function Gate({ view, onDone, withContent }: { view: SpecView; onDone(): void; withContent: boolean }) {
  const { specs } = useStation();
  if (view.asked === null) return null;
  const { phase, version } = view.asked;
  const decide = (approved: boolean) => async (text: string) => {
    await specs.decide(view.spec, { approved, phase, version, ...(text !== "" && { text }) });
    onDone();
  };
  return (
    <Ask
      key={`${phase} ${version}`}
      title={`Do you agree to its ${phaseTitles[phase].toLowerCase()}, version ${version}?`}
      field={{ label: "What you say about it", placeholder: "What has to be different, where you do not agree" }}
      answers={[
        { label: "Approve", look: "main", give: decide(true), done: "Approved." },
        { label: "Reject", look: "danger", needsText: true, give: decide(false), done: "Rejected: it is written anew." },
      ]}
    >
      {withContent && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keys.
        <div className={styles.asked} tabIndex={0}>
          <PhaseContent phase={phase} data={view.data} />
        </div>
      )}
    </Ask>
  );
}

/** What somebody wanted; what is missing before it can be begun. */
function Idea({ view }: { view: SpecView }) {
  return (
    <>
      {view.idea !== view.title && <p className={styles.words}>{visibleLines(view.idea)}</p>}
      {view.source === null && (
        <p className={styles.quiet}>
          It has no project yet. In the project's folder: <code>caisson spec run {view.name ?? view.spec}</code>
        </p>
      )}
      {view.status === "failed" && view.ended !== null && <p className={styles.words}>{visibleLines(view.ended.text)}</p>}
    </>
  );
}
