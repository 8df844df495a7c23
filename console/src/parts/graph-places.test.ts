import { describe, expect, test } from "vitest";
import { type Linked, layersOf, NODE_HEIGHT, NODE_WIDTH, placesOf } from "./graph-places.ts";

const thing = (id: string, ...after: string[]): Linked => ({ id, after });

test("things stand in the order in which they can be done", () => {
  expect(layersOf([thing("c", "a", "b"), thing("a"), thing("b"), thing("d", "c")])).toEqual([["a", "b"], ["c"], ["d"]]);
  expect(layersOf([thing("a", "gone")])).toEqual([["a"]]);
  expect(layersOf([thing("a", "b"), thing("b", "a")])).toEqual([["a", "b"]]);
  expect(layersOf([])).toEqual([]);
});

describe("places", () => {
  test("of nothing and of one", () => {
    expect(placesOf([])).toEqual({ width: 0, height: 0, nodes: [], edges: [] });
    expect(placesOf([thing("a")])).toEqual({ width: NODE_WIDTH, height: NODE_HEIGHT, nodes: [{ id: "a", x: 0, y: 0 }], edges: [] });
  });

  test("an edge goes from the lower side of one to the upper side of the next", () => {
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

  test("no node is crossed, and none covers another", () => {
    const things = [thing("a"), thing("b"), thing("c", "a"), thing("d", "a", "b"), thing("e", "c", "d"), thing("f", "e", "a", "b")];
    const { width, height, nodes, edges } = placesOf(things);
    expect(edges).toHaveLength(8);
    for (const one of nodes) {
      expect(one.x >= 0 && one.x + NODE_WIDTH <= width && one.y + NODE_HEIGHT <= height).toBe(true);
      for (const other of nodes) if (one !== other && one.y === other.y) expect(Math.abs(one.x - other.x)).toBeGreaterThan(NODE_WIDTH);
      // Beside a node an edge goes straight down, outside of it.
      for (const { from, to, points } of edges) {
        if (one.id === from || one.id === to) continue;
        for (const { x } of points.filter(({ y }) => y >= one.y && y <= one.y + NODE_HEIGHT))
          expect(x < one.x || x > one.x + NODE_WIDTH).toBe(true);
      }
    }
  });

  test("what waits for itself or for nobody has a place and no edge", () => {
    const { nodes, edges } = placesOf([thing("a", "b"), thing("b", "a"), thing("c", "gone")]);
    expect(nodes.map(({ id }) => id).sort()).toEqual(["a", "b", "c"]);
    expect(edges).toEqual([]);
  });
});
