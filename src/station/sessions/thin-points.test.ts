import { expect, test } from "vitest";
import type { StoredPoint } from "../../contract/session/session.ts";
import { thinPoints } from "./thin-points.ts";

const run = "run_aaaaaaaaaaaa";
const files = { kind: "point" as const, id: "ly_aaaaaaaaaaaa" };
const step = (number: number, bytes = 0): StoredPoint => ({ run, step: number, bytes, files });
const turn = (turnSeq: number, bytes = 0): StoredPoint => ({ run, turnSeq, bytes, files });
const GiB = 1024 ** 3;

test("keeps the newest 50 steps, and the beginnings of turns among older ones", () => {
  const steps = Array.from({ length: 120 }, (_, at) => step(at + 1));
  const points = [...steps.slice(0, 10), turn(40), ...steps.slice(10)];
  expect(thinPoints(points)).toEqual([turn(40), ...steps.slice(-50)]);
});

test("keeps 200 turns, but only ten of those with a snapshot each", () => {
  const turns = Array.from({ length: 300 }, (_, at) => turn(at + 1));
  expect(thinPoints(turns)).toEqual(turns.slice(-200));
  const snapshots = turns.map((point): StoredPoint => ({ ...point, files: { kind: "snapshot", id: null } }));
  expect(thinPoints(snapshots)).toEqual(snapshots.slice(-10));
});

test("keeps the newest points that fit in 4 GiB", () => {
  expect(thinPoints([step(1, 1), step(2, 3 * GiB), step(3, GiB)])).toEqual([step(2, 3 * GiB), step(3, GiB)]);
  expect(thinPoints([step(1, 5 * GiB)])).toEqual([]);
});
