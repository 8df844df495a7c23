/** A thing to draw, with the things that come before it. */
export interface Linked {
  id: string;
  after: readonly string[];
}

export interface Point {
  x: number;
  y: number;
}

/** A line from one node to another: from the first point, around the nodes in between, to the last. */
export interface Edge {
  from: string;
  to: string;
  points: readonly Point[];
}

export interface Places {
  width: number;
  height: number;
  /** The upper left corner of each node, in the order in which they can be done. */
  nodes: readonly (Point & { id: string })[];
  edges: readonly Edge[];
}

export const NODE_WIDTH = 232;
export const NODE_HEIGHT = 68;
const GAP_X = 20;
const GAP_Y = 44;
/** The room for an edge that passes the nodes of a layer. */
const PASSAGE_WIDTH = 12;

/** Sorts things into layers, each as early as its dependencies allow. Cycles come last. */
export function layersOf(things: readonly Linked[]): string[][] {
  const ids = new Set(things.map(({ id }) => id));
  const layers: string[][] = [];
  const placedIds = new Set<string>();
  let rest = [...things];
  while (rest.length > 0) {
    const free = rest.filter(({ after }) => after.every((id) => placedIds.has(id) || !ids.has(id)));
    const layer = (free.length > 0 ? free : rest).map(({ id }) => id);
    layers.push(layer);
    for (const id of layer) placedIds.add(id);
    rest = rest.filter(({ id }) => !placedIds.has(id));
  }
  return layers;
}

/** A node, or the passage of one node's edges through a layer below it. */
interface Slot {
  key: string;
  id: string;
  isPassage: boolean;
  /** The keys of the slots one layer above that lead to this one. */
  above: string[];
  centre: number;
}

const passageKey = (id: string, layer: number) => `${id}\n${layer}`;

/** Places layers below each other, and within a layer each node near its predecessors. No edge crosses a node. */
export function placesOf(things: readonly Linked[]): Places {
  const layers = layersOf(things);
  const layerOf = new Map(layers.flatMap((layer, index) => layer.map((id) => [id, index] as const)));
  const links = things.flatMap(({ id, after }) =>
    [...new Set(after)]
      .filter((from) => (layerOf.get(from) ?? Number.POSITIVE_INFINITY) < (layerOf.get(id) as number))
      .map((from) => ({ from, to: id })),
  );
  const rows = layers.map((layer): Slot[] => layer.map((id) => ({ key: id, id, isPassage: false, above: [], centre: 0 })));
  const slots = new Map(rows.flat().map((slot) => [slot.key, slot]));
  for (const { from, to } of links) {
    const [first, last] = [layerOf.get(from) as number, layerOf.get(to) as number];
    let above = from;
    for (let at = first + 1; at < last; at += 1) {
      const key = passageKey(from, at);
      if (!slots.has(key)) {
        const slot = { key, id: from, isPassage: true, above: [above], centre: 0 };
        slots.set(key, slot);
        rows[at]?.push(slot);
      }
      above = key;
    }
    slots.get(to)?.above.push(above);
  }
  const width = Math.max(0, ...rows.map(widthOf));
  for (const row of rows) arrange(row, { slots, width });
  const top = (layer: number) => layer * (NODE_HEIGHT + GAP_Y);
  const edges = links.map(({ from, to }) => {
    const [first, last] = [layerOf.get(from) as number, layerOf.get(to) as number];
    const centreOf = (key: string) => slots.get(key)?.centre ?? 0;
    const points: Point[] = [{ x: centreOf(from), y: top(first) + NODE_HEIGHT }];
    for (let at = first + 1; at < last; at += 1) {
      const x = centreOf(passageKey(from, at));
      points.push({ x, y: top(at) }, { x, y: top(at) + NODE_HEIGHT });
    }
    return { from, to, points: [...points, { x: centreOf(to), y: top(last) }] };
  });
  const nodes = rows.flatMap((row, layer) =>
    row.filter(({ isPassage }) => !isPassage).map(({ id, centre }) => ({ id, x: centre - NODE_WIDTH / 2, y: top(layer) })),
  );
  return { width, height: Math.max(0, top(rows.length) - GAP_Y), nodes, edges };
}

const widthOf = (row: readonly Slot[]): number =>
  row.reduce((sum, slot) => sum + (slot.isPassage ? PASSAGE_WIDTH : NODE_WIDTH), 0) + Math.max(0, row.length - 1) * GAP_X;

/** Centers a row. Places each slot as near to the mean of its predecessors as its neighbors allow. */
function arrange(row: Slot[], { slots, width }: { slots: ReadonlyMap<string, Slot>; width: number }): void {
  const preferredCentre = (slot: Slot): number => {
    const centres = slot.above.map((key) => slots.get(key)?.centre ?? 0);
    return centres.length === 0 ? 0 : centres.reduce((sum, each) => sum + each, 0) / centres.length;
  };
  row.sort((one, other) => preferredCentre(one) - preferredCentre(other));
  let left = (width - widthOf(row)) / 2;
  for (const slot of row) {
    const own = slot.isPassage ? PASSAGE_WIDTH : NODE_WIDTH;
    slot.centre = left + own / 2;
    left += own + GAP_X;
  }
}
