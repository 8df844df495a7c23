import { expect, test } from "vitest";
import type { JobView } from "../../../../src/contract/durable/durable-job.ts";
import type { SpecSummary } from "../../../../src/contract/spec/spec-verbs.ts";
import { itemOf, type WorkItem, workOfStream } from "../../data/work-item.ts";
import { narrowWork, usualSort, workFilterOf } from "./narrow-work.ts";

const times = { createdAt: "2026-06-01T11:00:00.000Z", updatedAt: "2026-06-01T12:00:00.000Z" };
const job: JobView = {
  ...{ id: "wf_aaaaaaaaaaaa", title: "review", owner: "local", parent: null, status: "running", waits: null, paused: null },
  ...{ cancelRequested: null, finish: null, text: null, endedAt: null, own: null, damage: null, seq: 1, ...times },
};
const waits = { due: null, children: [], person: null, signal: null };
const spec: SpecSummary = {
  ...{ spec: "spec_aaaaaaaaaaaa", name: "words", owner: "ana", title: "Count words", status: "waiting" },
  ...{ phase: "requirements", version: 3, seq: 9, asks: null, ...times },
};
const ship = {
  ...{ id: "ship_aaaaaaaaaaaa", owner: "local", title: "Count words", status: "open", branch: "feature/words", into: "main" },
  ...{ error: null, nextAt: null, ...times },
} as never;

const words = (item: WorkItem) => [item.word, item.state, item.about];

test("shows what a job waits for", () => {
  expect(words(itemOf.workflow(job))).toEqual(["running", "active", ""]);
  expect(words(itemOf.workflow({ ...job, waits: { ...waits, person: "May it?", children: ["run/run_aaaaaaaaaaaa"] } }))).toEqual([
    ...["needs input", "waiting", "May it?"],
  ]);
  expect(words(itemOf.workflow({ ...job, waits: { ...waits, signal: "deployed" } }))).toEqual([
    ...["waiting", "waiting", "the signal deployed"],
  ]);
  expect(words(itemOf.workflow({ ...job, waits: { ...waits, children: ["run/run_aaaaaaaaaaaa"] } }))).toEqual([
    ...["running", "active", "run_aaaaaaaaaaaa"],
  ]);
  expect(words(itemOf.merge({ ...job, finish: "failed", text: "two ways" }))).toEqual(["failed", "failed", "two ways"]);
  expect(words(itemOf.spec(spec))).toEqual(["needs input", "waiting", "your approval of its requirements"]);
  expect(words(itemOf.ship(ship))).toEqual(["open", "waiting", "someone to merge feature/words → main"]);
});

test("links only valid stream names to pages", () => {
  expect(workOfStream("workflow/wf_k3v7q2m5x4ab")?.href).toBe("/workflows/wf_k3v7q2m5x4ab");
  expect(workOfStream("run/run_k3v7q2m5x4ab")?.href).toBe("/runs/run_k3v7q2m5x4ab");
  for (const bad of ["workflow/../settings", "nothing/no_k3v7q2m5x4ab", "", "run/run_k3v7q2m5x4ab/x"]) expect(workOfStream(bad)).toBeNull();
});

test("filters by kind, state, owner and words, and hides parts by default", () => {
  const part = itemOf.workflow({ ...job, id: "wf_bbbbbbbbbbbb", title: "inner", parent: "workflow/wf_aaaaaaaaaaaa" });
  const all = [itemOf.workflow(job), part, itemOf.spec(spec), itemOf.ship(ship)];
  const found = (search: string, sort = usualSort) =>
    narrowWork(all, { filter: workFilterOf(new URLSearchParams(search)), sort }).map(({ id }) => id.split("_")[0]);
  expect(found("")).toEqual(["ship", "spec", "wf"]);
  expect(found("parts=1").length).toBe(4);
  expect(found("kind=spec")).toEqual(["spec"]);
  expect(found("state=waiting")).toEqual(["ship", "spec"]);
  expect(found("owner=ana")).toEqual(["spec"]);
  expect(found("q=WORDS+main")).toEqual(["ship"]);
  expect(found("kind=nonsense&state=__proto__")).toEqual(["ship", "spec", "wf"]);
  expect(found("", { by: "title", isDown: true })).toEqual(["wf", "ship", "spec"]);
});
