import { type ReactNode, useMemo, useState } from "react";
import { type Edge, type Linked, layersOf, NODE_HEIGHT, NODE_WIDTH, type Point, placesOf } from "./graph-places.ts";
import type { NodeState } from "./graph-state.tsx";
import styles from "./linked-graph.module.css";
import { useIsPhone } from "./use-is-phone.ts";

interface LinkedGraphProps<Item extends Linked & { state: NodeState }> {
  label: string;
  items: readonly Item[];
  /** The id of the selected item. */
  chosen: string | null;
  /** Renders a `GraphNode`. `isList`: no edge shows what comes before it. */
  nodeOf(item: Item, isList: boolean): ReactNode;
  /** Renders the details of the selected item below it, if there is no room beside the graph. */
  detailsOf(item: Item): ReactNode;
}

/** With more edges, a list is clearer than a drawing. */
const EDGES_MAX = 400;

/** A graph of things with edges to their successors; on a phone a list in the order in which they can be done. */
export function LinkedGraph<Item extends Linked & { state: NodeState }>(props: LinkedGraphProps<Item>) {
  const { label, items, chosen, nodeOf, detailsOf } = props;
  const isPhone = useIsPhone();
  const [pointed, setPointed] = useState<string | null>(null);
  // The layout depends only on ids and dependencies, not on states.
  const shape = JSON.stringify(items.map(({ id, after }) => ({ id, after })));
  const isList = isPhone || items.reduce((count, { after }) => count + after.length, 0) > EDGES_MAX;
  const places = useMemo(() => (isList ? null : placesOf(JSON.parse(shape) as Linked[])), [shape, isList]);
  const byId = new Map(items.map((item) => [item.id, item]));
  if (places === null) {
    return (
      <ol className={styles.list} aria-label={label}>
        {layersOf(items)
          .flat()
          .flatMap((id) => byId.get(id) ?? [])
          .map((item, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: names may repeat.
            <li key={`${item.id} ${index}`}>
              {nodeOf(item, true)}
              {item.id === chosen && detailsOf(item)}
            </li>
          ))}
      </ol>
    );
  }
  const near = pointed ?? chosen;
  return (
    <div className={styles.scroll}>
      <div className={styles.graph} style={{ inlineSize: places.width, blockSize: places.height }}>
        <svg aria-hidden="true" width={places.width} height={places.height}>
          {places.edges.map((edge) => (
            <EdgeLine
              key={`${edge.from}\n${edge.to}`}
              edge={edge}
              state={byId.get(edge.from)?.state ?? "pending"}
              isNear={edge.from === near || edge.to === near}
            />
          ))}
        </svg>
        <ol aria-label={label}>
          {places.nodes.map(({ id, x, y }, index) => (
            <li
              // biome-ignore lint/suspicious/noArrayIndexKey: names may repeat.
              key={`${id} ${index}`}
              style={{ insetInlineStart: x, insetBlockStart: y, inlineSize: NODE_WIDTH, blockSize: NODE_HEIGHT }}
              onPointerEnter={() => setPointed(id)}
              onPointerLeave={() => setPointed(null)}
            >
              {nodeOf(byId.get(id) as Item, false)}
            </li>
          ))}
        </ol>
      </div>
    </div>
  );
}

function EdgeLine({ edge: { from, to, points }, state, isNear }: { edge: Edge; state: NodeState; isNear: boolean }) {
  const end = points.at(-1) as Point;
  return (
    <g className={styles.edge} data-edge={`${from} ${to}`} data-state={state} data-near={isNear}>
      <path d={lineOf(points)} />
      <path d={`M${end.x - 4} ${end.y - 7}L${end.x} ${end.y - 1}L${end.x + 4} ${end.y - 7}`} />
    </g>
  );
}

/** Draws an edge: straight down beside nodes, curved between layers. */
function lineOf(points: readonly Point[]): string {
  const [first, ...rest] = points as [Point, ...Point[]];
  let line = `M${first.x} ${first.y}`;
  let before = first;
  for (const [index, point] of rest.entries()) {
    const middle = (before.y + point.y) / 2;
    line += index % 2 === 0 ? `C${before.x} ${middle} ${point.x} ${middle} ${point.x} ${point.y}` : `V${point.y}`;
    before = point;
  }
  return line;
}
