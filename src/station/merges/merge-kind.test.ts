import { expect, test } from "vitest";
import { CaissonError } from "../../contract/error/error.ts";
import type { ConflictedFile, NewMergeEvent } from "../../contract/merge/merge-event.ts";
import { type Crashpoint, noCrash } from "../../lib/crashpoint.ts";
import type { Log } from "../../log/log.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import { createJobs, type Jobs } from "../durable/durable-verbs.ts";
import { crashAt, createTestDriver, ownerOf } from "../durable/testing-durable.ts";
import { createMergeKind, type MergeWork } from "./merge-kind.ts";
import type { MergeState } from "./merge-state.ts";

const file: ConflictedFile = { path: "a.txt", kind: "content", sides: { base: "100644", merged: "100644", theirs: "100644" } };
const ID = "mrg_aaaaaaaaaaaa";

/** Keeps sessions in memory, each as the list of its parts. A merge may repeat its work on them. */
function world({ refusals = 0, offerFails = false } = {}) {
  const sessions = new Map<string, string[]>([
    ["one", ["one"]],
    ["two", ["two"]],
    ["three", ["three"]],
  ]);
  const runs = new Map<string, string>();
  /** Rejected resolutions, which are rejected again. */
  const refused = new Set<string>();
  const work: MergeWork = {
    async plan({ sessions: ids }) {
      return { order: [...ids], digests: {}, clashes: [{ sessions: ["one", "three"], files: 1 }] };
    },
    async step(state, session) {
      const parts = [...(sessions.get(state.head ?? "") ?? [])];
      const merged: string[] = [];
      for (const next of (state.order ?? []).filter((each) => !state.merged.includes(each))) {
        if (next === "three" && !state.merged.includes("three")) {
          sessions.set(session, parts);
          return { merged, conflict: { with: next, files: [file] } };
        }
        parts.push(next);
        merged.push(next);
      }
      sessions.set(session, parts);
      return { merged, conflict: null };
    },
    async offer(_state, conflict, { session, effect }) {
      if (offerFails && conflict.to === "agent") throw new CaissonError("unauthenticated", "no key of the model");
      sessions.set(session, [...(sessions.get(conflict.session) ?? [])]);
      if (conflict.to === "person") return { run: null };
      const run = runs.get(effect) ?? `run_${String.fromCharCode(97 + runs.size).repeat(12)}`;
      runs.set(effect, run);
      return { run };
    },
    async check(_state, conflict) {
      const look = `${conflict.candidate} ${conflict.answers}`;
      if (refused.has(look) || refused.size < refusals) {
        refused.add(look);
        return "Conflict markers are left.";
      }
      const candidate = sessions.get(conflict.candidate ?? "") ?? [];
      if (!candidate.includes(conflict.with)) candidate.push(conflict.with);
      return null;
    },
    async publish(state) {
      const name = state.name ?? "result";
      sessions.set(name, [...(sessions.get(state.head ?? "") ?? [])]);
      return name;
    },
    async cleanUp(ids) {
      for (const id of ids) sessions.delete(id);
      return [];
    },
  };
  return { work, sessions, runs };
}

interface Process extends AsyncDisposable {
  jobs: Jobs<MergeState, NewMergeEvent>;
  defects: unknown[];
  /** Resolves at the first defect, such as a crash. */
  died: Promise<void>;
}

function process(
  log: Log,
  work: MergeWork,
  { pid, crashpoint = noCrash, gone: deadOwners }: { pid: number; crashpoint?: Crashpoint; gone?: Set<string> },
): Process {
  const kind = createMergeKind(work);
  const defects: unknown[] = [];
  const { promise: died, resolve } = Promise.withResolvers<void>();
  const onDefect = (error: unknown) => {
    defects.push(error);
    resolve();
  };
  const driver = createTestDriver({ log, kinds: [kind], pid, crashpoint, onDefect, ...(deadOwners && { gone: deadOwners }) });
  return {
    jobs: createJobs(kind, { log, driver, crashpoint: noCrash }),
    defects,
    died,
    [Symbol.asyncDispose]: () => driver[Symbol.asyncDispose](),
  };
}

const newMerge = (conflicts: "agent" | "ask" | "stop", sessions = ["one", "two", "three"]) => ({
  id: ID,
  title: "merge",
  events: [{ type: "merge.begun" as const, data: { sessions, conflicts, agent: "merger", model: null, name: "all" } }],
});

test("merges compatible sessions first, the rest by an agent, and keeps the result", async () => {
  const { work, sessions, runs } = world();
  await using here = process(createMemoryLog(), work, { pid: 1 });
  await here.jobs.start(newMerge("agent"));
  expect(await here.jobs.wait(ID)).toMatchObject({ finish: "completed", text: "all" });
  expect([...sessions.keys()].sort()).toEqual(["all", "one", "three", "two"]);
  expect(sessions.get("all")).toEqual(["one", "two", "three"]);
  expect(runs.size).toBe(1);
});

test("asks a person after three attempts by an agent, until it is resolved", async () => {
  const { work, sessions, runs } = world({ refusals: 4 });
  await using here = process(createMemoryLog(), work, { pid: 1 });
  const { jobs } = here;
  await jobs.start(newMerge("agent"));
  const waiting = await jobs.wait(ID, { orPerson: true });
  expect(waiting.waits?.person).toContain("Conflict markers are left.");
  expect(runs.size).toBe(3);
  const answer = async () => {
    await jobs.say(ID, () => [{ type: "merge.answered", data: { by: "me", take: [], agent: false } }]);
    jobs.drive(ID);
    return await jobs.wait(ID, { orPerson: true });
  };
  expect((await answer()).waits?.person).toContain("a.txt");
  expect(await answer()).toMatchObject({ finish: "completed" });
  expect(sessions.get("all")).toEqual(["one", "two", "three"]);
});

test("asks a person at once if no agent can be started", async () => {
  const { work, runs } = world({ offerFails: true });
  await using here = process(createMemoryLog(), work, { pid: 1 });
  await here.jobs.start(newMerge("agent"));
  expect((await here.jobs.wait(ID, { orPerson: true })).waits?.person).toContain("No key of the model");
  expect(runs.size).toBe(0);
});

test("removes its sessions if it stops at a conflict or is cancelled", async () => {
  const { work, sessions } = world();
  await using here = process(createMemoryLog(), work, { pid: 1 });
  await here.jobs.start(newMerge("stop"));
  expect(await here.jobs.wait(ID)).toMatchObject({ finish: "failed", text: expect.stringContaining('"a.txt"') });
  expect([...sessions.keys()]).toEqual(["one", "two", "three"]);
  const other = world();
  await using there = process(createMemoryLog(), other.work, { pid: 1 });
  await there.jobs.start(newMerge("ask"));
  await there.jobs.wait(ID, { orPerson: true });
  await there.jobs.cancel(ID, { by: "me" });
  expect(await there.jobs.wait(ID)).toMatchObject({ finish: "cancelled" });
  expect([...other.sessions.keys()]).toEqual(["one", "two", "three"]);
});

/**
 * Runs the same merge with a driver that dies at the Nth point, and another that continues. Resolves with whether the
 * first one died.
 */
async function crashed(nth: number): Promise<boolean> {
  const log = createMemoryLog();
  const { work, sessions, runs } = world({ refusals: 1 });
  const crashpoint = crashAt(nth);
  {
    await using first = process(log, work, { pid: 1, crashpoint });
    await first.jobs.start(newMerge("agent"));
    const over = new AbortController();
    const ended = first.jobs.wait(ID, { signal: over.signal }).catch(() => undefined);
    await Promise.race([ended, first.died]);
    over.abort();
    await ended;
  }
  await using second = process(log, work, { pid: 2, gone: new Set([ownerOf(1)]) });
  second.jobs.drive(ID);
  expect(await second.jobs.wait(ID)).toMatchObject({ finish: "completed" });
  expect(sessions.get("all"), `dead at point ${nth}`).toEqual(["one", "two", "three"]);
  expect([...sessions.keys()].sort()).toEqual(["all", "one", "three", "two"]);
  // An attempt's run is found again, not started twice.
  expect(runs.size).toBe(2);
  expect(second.defects).toEqual([]);
  return crashpoint.points >= nth;
}

test("has the same result if a driver dies before or after any event", async () => {
  let nth = 1;
  while (await crashed(nth)) nth += 1;
  expect(nth).toBeGreaterThan(30);
});
