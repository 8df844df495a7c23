import { describe, expect, test } from "vitest";
import { type Linked, layersOf, NODE_HEIGHT, NODE_WIDTH, placesOf } from "./graph-places.ts";

const thing = (id: string, ...after: string[]): Linked => ({ id, after });

test("places each thing in a layer below its dependencies", () => {
  expect(layersOf([thing("c", "a", "b"), thing("a"), thing("b"), thing("d", "c")])).toEqual([["a", "b"], ["c"], ["d"]]);
  expect(layersOf([thing("a", "gone")])).toEqual([["a"]]);
  expect(layersOf([thing("a", "b"), thing("b", "a")])).toEqual([["a", "b"]]);
  expect(layersOf([])).toEqual([]);
});

describe("graph places", () => {
  test("place nothing and one thing", () => {
    expect(placesOf([])).toEqual({ width: 0, height: 0, nodes: [], edges: [] });
    expect(placesOf([thing("a")])).toEqual({ width: NODE_WIDTH, height: NODE_HEIGHT, nodes: [{ id: "a", x: 0, y: 0 }], edges: [] });
  });

  test("draw an edge from the bottom of a node to the top of the next", () => {
    const { nodes, edges } = placesOf([thing("a"), thing("b", "a", "a")]);
    const [a, b] = nodes;
    expect(edges).toEqual([
      {
        from: "a",
        to: "b",
        points: [
          { x: (a?.x ?? 0) + NODE_WIDTH / 2, y: NODE_HEIGHT },
          { x: (b?.x ?? 0) + NODE_WIDTH / 2, y: b?.y },
        ],
      },
    ]);
  });

  test("keep nodes and edges clear of other nodes", () => {
    const things = [thing("a"), thing("b"), thing("c", "a"), thing("d", "a", "b"), thing("e", "c", "d"), thing("f", "e", "a", "b")];
    const { width, height, nodes, edges } = placesOf(things);
    expect(edges).toHaveLength(8);
    for (const one of nodes) {
      expect(one.x >= 0 && one.x + NODE_WIDTH <= width && one.y + NODE_HEIGHT <= height).toBe(true);
      for (const other of nodes) if (one !== other && one.y === other.y) expect(Math.abs(one.x - other.x)).toBeGreaterThan(NODE_WIDTH);
      // An edge passes other nodes vertically, to their left or right.
      for (const { from, to, points } of edges) {
        if (one.id === from || one.id === to) continue;
        for (const { x } of points.filter(({ y }) => y >= one.y && y <= one.y + NODE_HEIGHT))
          expect(x < one.x || x > one.x + NODE_WIDTH).toBe(true);
      }
    }
  });

  test("draw no edges for cycles and missing dependencies", () => {
    const { nodes, edges } = placesOf([thing("a", "b"), thing("b", "a"), thing("c", "gone")]);
    expect(nodes.map(({ id }) => id).sort()).toEqual(["a", "b", "c"]);
    expect(edges).toEqual([]);
  });
});
