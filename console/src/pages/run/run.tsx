import { lazy, Suspense, useState } from "react";
import { useParams, useSearchParams } from "wouter";
import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import type { SessionPoint } from "../../../../src/contract/session/session-verbs.ts";
import { useRun } from "../../data/queries.ts";
import { useFilterParams } from "../../parts/filter-params.ts";
import { Loading } from "../../parts/loading.tsx";
import { NameLine } from "../../parts/name-line.tsx";
import { Page } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import { visibleTitle } from "../../parts/visible-text.ts";
import { RunStatus, statusOf } from "../runs/run-status.tsx";
import { MessageBox } from "./message-box.tsx";
import { pointInAddress, usePoints } from "./points/use-points.ts";
import { When } from "./points/when.tsx";
import styles from "./run.module.css";
import { RunActions } from "./run-actions.tsx";
import { RunBanner } from "./run-banner.tsx";
import { RunDetails } from "./run-details.tsx";
import type { Timeline } from "./timeline.ts";
import { TimelineView } from "./timeline-view.tsx";
import { useTimeline } from "./use-timeline.ts";

const SessionFiles = lazy(() => import("./points/session-files.tsx"));
const Changes = lazy(() => import("./changes/changes.tsx"));
const Steps = lazy(() => import("./steps/steps.tsx"));
const Forks = lazy(() => import("./forks/forks.tsx"));

export default function Run() {
  const { run = "" } = useParams<{ run: string }>();
  return <RunPage key={run} run={run} />;
}

const RUN_ID = /^run_[a-z2-7]{12}$/;

function RunPage({ run }: { run: string }) {
  const { data: view } = useRun(run);
  // If the address contains the id instead of a name, we request the events at the same time as the run.
  const id = view?.run ?? (RUN_ID.test(run) ? run : null);
  return id === null ? <NoRunYet run={run} /> : <OpenRun run={id} />;
}

function NoRunYet({ run }: { run: string }) {
  const { error, refetch } = useRun(run);
  return <Page title="Run">{error === null ? <Loading /> : <Problem error={error} onRetry={() => void refetch()} />}</Page>;
}

const tabs = ["timeline", "steps", "changes", "files", "forks", "details"] as const;

function OpenRun({ run }: { run: string }) {
  const { data: view } = useRun(run);
  const feed = useTimeline(run);
  const [params, change] = useFilterParams();
  const [search] = useSearchParams();
  const [sent, setSent] = useState(0);
  const points = usePoints(view);
  if (view === undefined) return <NoRunYet run={run} />;
  const point = pointInAddress(points, { at: params.get("at"), view });
  const requestedTab = search.get("tab");
  const tab = tabs.find((each) => each === requestedTab) ?? "timeline";
  const hrefOf = (each: (typeof tabs)[number]) => `/runs/${run}${each === "timeline" ? "" : `?tab=${each}`}`;
  const seq = Number(params.get("event"));
  const { timeline, version } = feed;
  return (
    <Page
      title={`${statusOf(view).word}: ${visibleTitle(view.name ?? view.title.slice(0, 60))}`}
      name={
        <NameLine up={{ href: "/runs", label: "Runs" }} name={visibleTitle(view.title.slice(0, 200))}>
          <RunStatus view={view} />
        </NameLine>
      }
      actions={<RunActions view={view} />}
    >
      <div className={styles.body}>
        <Tabs
          label="Run sections"
          current={hrefOf(tab)}
          tabs={[
            { href: hrefOf("timeline"), label: "Timeline" },
            { href: hrefOf("steps"), label: "Steps" },
            { href: hrefOf("changes"), label: "Changes" },
            { href: hrefOf("files"), label: "Files" },
            { href: hrefOf("forks"), label: "Forks" },
            { href: hrefOf("details"), label: "Details" },
          ]}
        />
        <RunBanner {...{ view, timeline }} />
        {feed.error !== null && <Problem error={feed.error} onRetry={feed.retry} />}
        {tab === "timeline" && (
          <div className={styles.columns}>
            <div className={styles.timeline}>
              {feed.isLoaded || timeline.items.length > 0 ? (
                <TimelineView
                  {...{ run, timeline, version }}
                  points={points}
                  sent={sent}
                  view={view}
                  isOpen={view.status !== "ended"}
                  eventSeq={Number.isInteger(seq) && seq > 0 ? seq : null}
                  find={params.get("find") ?? ""}
                  withQuiet={params.get("all") === "1"}
                  onChange={change}
                />
              ) : (
                <Loading rows={10} />
              )}
              {view.status !== "damaged" && <MessageBox view={view} onSent={() => setSent(sent + 1)} />}
            </div>
            <div className={styles.side}>
              <RunDetails {...{ view, timeline, version }} />
            </div>
          </div>
        )}
        <Suspense fallback={<Loading />}>
          <LazyTab {...{ tab, view, timeline, points, point }} />
        </Suspense>
        {tab === "details" && (
          <div className={styles.details}>
            <RunDetails {...{ view, timeline, version }} />
          </div>
        )}
      </div>
    </Page>
  );
}

interface LazyTabProps {
  tab: (typeof tabs)[number];
  view: RunView;
  timeline: Timeline;
  points: readonly SessionPoint[];
  point: SessionPoint | null;
}

/** The tabs that load when they are opened. */
function LazyTab({ tab, view, timeline, points, point }: LazyTabProps) {
  switch (tab) {
    case "steps":
      return <Steps view={view} events={timeline} />;
    case "forks":
      return <Forks view={view} />;
    case "changes":
      return (
        <>
          <When {...{ view, points, point }} />
          <Changes key={point?.step ?? "now"} view={view} version={timeline.files.size} at={point?.step} />
        </>
      );
    case "files":
      return (
        <>
          <When {...{ view, points, point }} />
          <SessionFiles {...{ view, point }} />
        </>
      );
    default:
      return null;
  }
}
