import { useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { useSearchParams } from "wouter";
import type { WorkflowView } from "../../../../src/contract/workflow/workflow-verbs.ts";
import { useFollowedEvents } from "../../data/followed-events.ts";
import { useStation } from "../../data/station.tsx";
import { jobStatus } from "../../data/work-item.ts";
import { lookAtWorkAgain, workKeys } from "../../data/work-queries.ts";
import { EventList } from "../../parts/event-list.tsx";
import { useFilterParams } from "../../parts/filter-params.ts";
import { Scroll } from "../../parts/scroll.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import { TwoColumns } from "../../parts/two-columns.tsx";
import { Value } from "../../parts/value.tsx";
import { visibleLines } from "../../parts/visible-text.ts";
import { JobFrame, JobPage } from "../job/job-page.tsx";
import { Graph } from "./graph.tsx";
import { StepDetails } from "./step-details.tsx";
import { historyOf } from "./step-history.ts";
import { countSteps, nodeAt, stepTree } from "./step-tree.ts";
import styles from "./workflow.module.css";
import { WorkflowActions } from "./workflow-actions.tsx";
import { WorkflowAsks } from "./workflow-asks.tsx";
import { WorkflowDetails } from "./workflow-details.tsx";

export default function Workflow() {
  const { workflows } = useStation();
  return (
    <JobPage kind="workflow" get={workflows.get}>
      {(view) => <OpenWorkflow view={view} />}
    </JobPage>
  );
}

const tabs = ["graph", "events", "definition"] as const;

function OpenWorkflow({ view }: { view: WorkflowView }) {
  const station = useStation();
  const queries = useQueryClient();
  const [params, change] = useFilterParams();
  const [search] = useSearchParams();
  const { id } = view;
  const events = useFollowedEvents({
    queryKey: workKeys.of("workflow", id),
    follow: (options) => station.workflows.events(id, { ...options, follow: true }),
    isOpen: view.finish === null,
  });
  const history = useMemo(() => historyOf(events), [events]);
  const nodes = useMemo(() => stepTree(view, history), [view, history]);
  const onDone = (next: WorkflowView) => {
    queries.setQueryData(workKeys.of("workflow", id), next);
    lookAtWorkAgain(queries);
  };
  const tab = tabs.find((each) => each === search.get("tab")) ?? "graph";
  const hrefOf = (each: (typeof tabs)[number]) => `/workflows/${id}${each === "graph" ? "" : `?tab=${each}`}`;
  const chosen = nodeAt(nodes, params.get("step") ?? "");
  return (
    <JobFrame kind="workflow" status={jobStatus(view)} title={view.title} actions={<WorkflowActions view={view} onDone={onDone} />}>
      <div className={styles.page}>
        <Tabs
          label="Workflow sections"
          current={hrefOf(tab)}
          tabs={[
            { href: hrefOf("graph"), label: "Graph" },
            { href: hrefOf("events"), label: "Events" },
            { href: hrefOf("definition"), label: "Definition" },
          ]}
        />
        {tab === "graph" && (
          <TwoColumns
            label="Graph"
            side={
              chosen === null ? (
                <WorkflowDetails view={view} {...countSteps(nodes)} />
              ) : (
                <StepDetails node={chosen} tries={history.get(chosen.path) ?? []} onClose={() => change({ step: null })} />
              )
            }
          >
            <WorkflowAsks {...{ view, nodes, history, onDone }} />
            <Said view={view} />
            <Graph nodes={nodes} chosen={chosen?.path ?? null} onChoose={(step) => change({ step })} />
          </TwoColumns>
        )}
        {tab === "events" && (
          <Scroll className={styles.part} label="Events">
            <EventList label="Events" events={events.map((event) => ({ ...event, key: event.seq }))} />
          </Scroll>
        )}
        {tab === "definition" && (
          <div className={styles.part}>
            <Value label="Definition" value={view.definition} isAlone />
          </div>
        )}
      </div>
    </JobFrame>
  );
}

/** The reason why it waits or ended, if there is one. */
function Said({ view: { finish, text, paused, damage } }: { view: WorkflowView }) {
  const reason = damage ?? (finish === null ? paused?.text : text);
  if (reason == null || reason === "") return null;
  return (
    <p className={finish === "failed" || finish === "timed_out" || damage !== null ? styles.error : styles.quiet}>{visibleLines(reason)}</p>
  );
}
