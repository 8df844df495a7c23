import { expect, test } from "vitest";
import type { TimelineFork, TimelineRelative } from "../../../../../src/contract/run/run-timeline.ts";
import { familyRows } from "./fork-tree.ts";

const at = (second: number) => `2026-06-01T12:00:0${second}.000Z`;
const facts = { name: null, isTail: false, model: "m", status: "ended", finish: "done", steps: 4, costUsd: 1 };
const fork = (run: string, from: TimelineFork["from"], second: number): TimelineFork => ({ ...facts, run, from, createdAt: at(second) });
const view = (run: string, forked: { run: string; step: number; seq: number; isTail: boolean } | null, second: number) =>
  ({ ...facts, status: "ended", finish: "done", run, forked, createdAt: at(second) }) as const;
const outline = (rows: ReturnType<typeof familyRows>) =>
  rows.map(({ run, depth, isCurrent }) => `${"-".repeat(depth)}${run}${isCurrent ? "*" : ""}`);

test("puts each fork below the run that it comes from, by step", () => {
  const forks = [
    fork("late", { run: "me", step: 3 }, 2),
    fork("early", { run: "me", step: 1 }, 3),
    fork("deep", { run: "late", step: 4 }, 4),
  ];
  expect(outline(familyRows(view("me", null, 0), { from: null, forks, relatives: [] }))).toEqual(["me*", "-early", "-late", "--deep"]);
});

test("shows the run among its relatives", () => {
  const oldest: TimelineRelative = { ...facts, run: "oldest", from: null, createdAt: at(0) };
  const relatives = [oldest, fork("sibling", { run: "oldest", step: 2 }, 3)];
  const from = { run: "oldest", step: 2 };
  const rows = familyRows(view("me", { ...from, seq: 9, isTail: true }, 1), {
    from,
    forks: [fork("own", { run: "me", step: 2 }, 4)],
    relatives,
  });
  expect(outline(rows)).toEqual(["oldest", "-me*", "--own", "-sibling"]);
  expect(rows.map(({ isTail }) => isTail)).toEqual([false, true, false, false]);
});

test("begins with the run whose parent was removed", () => {
  const from = { run: "removed", step: 2 };
  expect(outline(familyRows(view("me", { ...from, seq: 9, isTail: false }, 1), { from, forks: [], relatives: [] }))).toEqual(["me*"]);
});

test("a chain of hundreds of forks is no problem", () => {
  const forks = Array.from({ length: 1_000 }, (_, index) => fork(`f${index}`, { run: index === 0 ? "me" : `f${index - 1}`, step: 1 }, 1));
  const rows = familyRows(view("me", null, 0), { from: null, forks, relatives: [] });
  expect(rows.at(-1)).toMatchObject({ run: "f999", depth: 1_000 });
});
