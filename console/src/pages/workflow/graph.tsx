import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useStation } from "../../data/station.tsx";
import { workOfStream } from "../../data/work-item.ts";
import { workKeys } from "../../data/work-queries.ts";
import { GraphNode } from "../../parts/graph-node.tsx";
import { visibleText } from "../../parts/visible-text.ts";
import styles from "./graph.module.css";
import { aboutStep, type StepGroup, type StepNode, stepTree } from "./step-tree.ts";

interface Chosen {
  /** The path of the selected step. */
  chosen: string | null;
  onChoose(path: string): void;
}

/** Steps from top to bottom in their order. Parallel ones are side by side. */
export function Graph({ nodes, ...chosen }: { nodes: readonly StepNode[] } & Chosen) {
  return (
    <ol className={styles.sequence}>
      {nodes.map((node) => (
        <li key={node.path} data-state={node.state}>
          <Step node={node} {...chosen} />
        </li>
      ))}
    </ol>
  );
}

/** Kinds of steps that run their groups in parallel, or choose one of them. */
const besides: ReadonlySet<string> = new Set(["parallel", "foreach", "switch"]);

function Step({ node, ...chosen }: { node: StepNode } & Chosen) {
  const { step, path, state, view, groups, left } = node;
  const child = view?.child ?? null;
  return (
    <>
      <GraphNode
        state={state}
        name={step.name}
        notes={[step.kind, ...((view?.attempt ?? 1) > 1 ? [`attempt ${view?.attempt}`] : [])]}
        about={visibleText(aboutStep(step))}
        isChosen={chosen.chosen === path}
        onChoose={() => chosen.onChoose(path)}
      />
      {groups.length > 0 && (
        <div className={besides.has(step.kind) ? styles.beside : styles.below}>
          {groups.map((group) => (
            <Group key={group.key} group={group} {...chosen} />
          ))}
          {left > 0 && <p className={styles.left}>and {left} more</p>}
        </div>
      )}
      {step.kind === "workflow" && child !== null && <SubWorkflow stream={child} onChoose={() => chosen.onChoose(path)} />}
    </>
  );
}

function Group({ group: { label, nodes, isUnused }, ...chosen }: { group: StepGroup } & Chosen) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: part of a graph, not of a form.
    <div className={styles.group} role="group" aria-label={visibleText(label)} data-unused={isUnused}>
      <p className={styles.label} title={visibleText(label)}>
        {visibleText(label)}
      </p>
      <Graph nodes={nodes} {...chosen} />
    </div>
  );
}

/** The graph of a workflow that is a step of this one. Its own page has the details of its steps. */
function SubWorkflow({ stream, onChoose }: { stream: string; onChoose(): void }) {
  const station = useStation();
  const id = workOfStream(stream)?.id ?? "";
  const { data } = useQuery({
    queryKey: workKeys.of("workflow", id),
    queryFn: ({ signal }) => station.workflows.get(id, { signal }),
    enabled: id !== "",
  });
  const nodes = useMemo(() => (data === undefined ? [] : stepTree(data)), [data]);
  if (data === undefined) return null;
  return (
    <div className={styles.below}>
      <Group group={{ key: id, label: `workflow ${data.title}`, isUnused: false, nodes }} chosen={null} onChoose={onChoose} />
    </div>
  );
}
