import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { useParams, useSearchParams } from "wouter";
import type { WorkflowView } from "../../../../src/contract/workflow-verbs.ts";
import { Badge } from "../../parts/badge.tsx";
import { EventList } from "../../parts/event-list.tsx";
import { useFilterParams } from "../../parts/filter-params.ts";
import { NameLine } from "../../parts/name-line.tsx";
import { NotThere } from "../../parts/not-there.tsx";
import { Page } from "../../parts/page.tsx";
import { Scroll } from "../../parts/scroll.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import { TwoColumns } from "../../parts/two-columns.tsx";
import { Value } from "../../parts/value.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { useFollowed } from "../../station/followed.ts";
import { useStation } from "../../station/station.tsx";
import { drivenStatus } from "../../station/work-item.ts";
import { lookAtWorkAgain, workKeys } from "../../station/work-queries.ts";
import { Graph } from "./graph.tsx";
import { StepDetails } from "./step-details.tsx";
import { historyOf } from "./step-history.ts";
import { countSteps, nodeAt, stepTree } from "./step-tree.ts";
import styles from "./workflow.module.css";
import { WorkflowActions } from "./workflow-actions.tsx";
import { WorkflowAsks } from "./workflow-asks.tsx";
import { WorkflowDetails } from "./workflow-details.tsx";

export default function Workflow() {
  const { workflow = "" } = useParams<{ workflow: string }>();
  return <WorkflowPage key={workflow} id={workflow} />;
}

function WorkflowPage({ id }: { id: string }) {
  const station = useStation();
  const { data, error, refetch } = useQuery({
    queryKey: workKeys.workflow(id),
    queryFn: ({ signal }) => station.workflows.get(id, { signal }),
  });
  if (data === undefined) return <NotThere what="workflow" error={error} onRetry={() => void refetch()} />;
  return <OpenWorkflow view={data} />;
}

const tabs = ["graph", "events", "definition"] as const;

function OpenWorkflow({ view }: { view: WorkflowView }) {
  const station = useStation();
  const queries = useQueryClient();
  const [params, change] = useFilterParams();
  const [search] = useSearchParams();
  const { id } = view;
  const events = useFollowed({
    queryKey: workKeys.workflow(id),
    follow: useCallback(
      (options: { fromSeq: number; signal: AbortSignal }) => station.workflows.events(id, { ...options, follow: true }),
      [station, id],
    ),
    isOpen: view.finish === null,
  });
  const history = useMemo(() => historyOf(events), [events]);
  const nodes = useMemo(() => stepTree(view, history), [view, history]);
  const onDone = (next: WorkflowView) => {
    queries.setQueryData(workKeys.workflow(id), next);
    lookAtWorkAgain(queries);
  };
  const tab = tabs.find((each) => each === search.get("tab")) ?? "graph";
  const hrefOf = (each: (typeof tabs)[number]) => `/workflows/${id}${each === "graph" ? "" : `?tab=${each}`}`;
  const chosen = nodeAt(nodes, params.get("step") ?? "");
  const { word, tone } = drivenStatus(view);
  const title = visibleText(view.title);
  return (
    <Page
      title={`${word}: ${title}`}
      name={
        <NameLine up={{ href: "/work?kind=workflow", label: "Workflows" }} name={title}>
          <Badge tone={tone}>{word}</Badge>
        </NameLine>
      }
      actions={<WorkflowActions view={view} onDone={onDone} />}
    >
      <div className={styles.page}>
        <Tabs
          label="Parts of the workflow"
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
          <Scroll className={styles.part} label="What happened">
            <EventList label="Events of the workflow" events={events.map((event) => ({ ...event, key: event.seq }))} />
          </Scroll>
        )}
        {tab === "definition" && (
          <div className={styles.part}>
            <Value label="Definition" value={view.definition} isAlone />
          </div>
        )}
      </div>
    </Page>
  );
}

/** Why it stands still or has ended, where there is a reason. */
function Said({ view: { finish, text, paused, damage } }: { view: WorkflowView }) {
  const said = damage ?? (finish === null ? paused?.text : text);
  if (said == null || said === "") return null;
  return (
    <p className={finish === "failed" || finish === "timed_out" || damage !== null ? styles.error : styles.quiet}>{visibleLines(said)}</p>
  );
}
