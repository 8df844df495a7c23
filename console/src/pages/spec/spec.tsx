import { useQueryClient } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { phases } from "../../../../src/contract/spec/spec.ts";
import type { SpecView } from "../../../../src/contract/spec/spec-verbs.ts";
import { useFollowedEvents } from "../../data/followed-events.ts";
import { useStation } from "../../data/station.tsx";
import { specStatus } from "../../data/work-item.ts";
import { lookAtWorkAgain, workKeys } from "../../data/work-queries.ts";
import { Ask } from "../../parts/ask.tsx";
import { EventList } from "../../parts/event-list.tsx";
import { useFilterParams } from "../../parts/filter-params.ts";
import { Scroll } from "../../parts/scroll.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import { visibleLines } from "../../parts/visible-text.ts";
import { JobFrame, JobPage } from "../job/job-page.tsx";
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
  const { specs } = useStation();
  return (
    <JobPage kind="spec" get={specs.get}>
      {(view, word) => <OpenSpec view={view} word={word} />}
    </JobPage>
  );
}

const tabs = ["phases", "document", "versions", "tasks", "coverage", "events"] as const;

function OpenSpec({ view, word }: { view: SpecView; word: string }) {
  const station = useStation();
  const queries = useQueryClient();
  const [params, change] = useFilterParams();
  const [search] = useSearchParams();
  const { spec } = view;
  const events = useFollowedEvents({
    queryKey: workKeys.of("spec", word),
    follow: (options) => station.specs.events(spec, { ...options, follow: true }),
    isOpen: true,
  });
  const lookAgain = () => {
    void queries.invalidateQueries({ queryKey: workKeys.of("spec", word) });
    lookAtWorkAgain(queries);
  };
  const tab = tabs.find((each) => each === search.get("tab")) ?? "phases";
  const hrefOf = (each: (typeof tabs)[number]) => `/specs/${word}${each === "phases" ? "" : `?tab=${each}`}`;
  const phase = phases.find((each) => each === params.get("phase")) ?? view.asked?.phase ?? view.phase;
  const gate = <Gate view={view} onDone={lookAgain} withContent={tab !== "phases" || phase !== view.asked?.phase} />;
  return (
    <JobFrame
      kind="spec"
      status={specStatus(view)}
      title={view.title}
      shortTitle={view.name ?? view.title}
      actions={<SpecActions view={view} onDone={lookAgain} />}
    >
      <div className={styles.page}>
        <Tabs
          label="Spec sections"
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
          <Scroll className={styles.part} label={`Spec ${tab}`}>
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
            {tab === "events" && <EventList label="Events" events={events.map((event) => ({ ...event, key: event.seq }))} />}
          </Scroll>
        )}
      </div>
    </JobFrame>
  );
}

/** The gate of a phase that waits for approval. `withContent` shows the text to approve as well. */
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
      title={`Approve ${phaseTitles[phase].toLowerCase()}, version ${version}?`}
      field={{ label: "Comment", placeholder: "What has to change, if you reject it" }}
      answers={[
        { label: "Approve", look: "main", give: decide(true), done: "Approved." },
        { label: "Reject", look: "danger", needsText: true, give: decide(false), done: "Rejected. It will be rewritten." },
      ]}
    >
      {withContent && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard.
        <div className={styles.asked} tabIndex={0}>
          <PhaseContent phase={phase} data={view.data} />
        </div>
      )}
    </Ask>
  );
}

/** The idea of the spec, and what it still needs to start. */
function Idea({ view }: { view: SpecView }) {
  return (
    <>
      {view.idea !== view.title && <p className={styles.words}>{visibleLines(view.idea)}</p>}
      {view.source === null && (
        <p className={styles.quiet}>
          No project yet. Run this in the project folder: <code>caisson spec run {view.name ?? view.spec}</code>
        </p>
      )}
      {view.status === "failed" && view.ended !== null && <p className={styles.words}>{visibleLines(view.ended.text)}</p>}
    </>
  );
}
