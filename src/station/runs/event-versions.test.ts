import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { defineEvent } from "../../contract/define-event.ts";
import { eventFamily, readEvent } from "../../contract/event-family.ts";
import { RunCreated, RunEvent, type runEvents, TodoChanged } from "../../contract/run-event.ts";
import type { Log } from "../../log/log.ts";
import type { Projection } from "../../log/projection.ts";
import { createSqliteLog } from "../../log/sqlite/log.ts";
import { foldRun } from "./owned-journal.ts";

/** The Caisson after this one: it says for each list of things to do whose it is. */
const NextTodoChanged = defineEvent("todo.changed", 2, { ...TodoChanged.shape.data.shape, owner: z.string() }).upcast(
  TodoChanged,
  (data) => ({
    ...data,
    todo: data.todo.map((item) => ({ ...item, text: `${item.text} (from before)` })),
    owner: "nobody",
  }),
);
const next = eventFamily([...RunEvent.options.filter((each) => each !== TodoChanged), NextTodoChanged]);
/** Its head of a run: the owners of its lists. */
const owners: Projection = {
  prefix: "run/",
  version: 1000,
  empty: () => [],
  apply(head, stored) {
    const event = readEvent(next, stored);
    return event.version === 2 ? [...(head as string[]), event.data.owner] : head;
  },
  isOpen: () => true,
};

const RUN = "run_aaaaaaaaaaaa";
const created = RunCreated.make({
  run: RUN,
  parent: null,
  session: "one",
  agent: { name: "test", digest: "", definition: { name: "test", system: "" } },
  task: "Do it.",
  model: "scripted/test",
  budgets: {},
});
const todo = [{ id: "1", text: "Write it", status: "pending" as const, blockedBy: [] }];

describe("events of another version, through the log, its file and the folds", () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "caisson-event-versions-"));
  });
  afterEach(() => rm(dir, { recursive: true }));
  const now = () => createSqliteLog({ path: join(dir, "log.db") });
  const later = () => createSqliteLog({ path: join(dir, "log.db"), projectionOf: () => owners });
  const using = async (log: Log, work: (log: Log) => Promise<void>) => {
    await using held = log;
    await work(held);
  };

  test("what was written in the version before is read as the current one, by the fold and by the head that is made anew", async () => {
    await using(now(), async (log) => void (await log.append(`run/${RUN}`, [created, TodoChanged.make({ call: "t1", todo })])));
    await using(later(), async (log) => {
      const { state, seq } = await foldRun(log, RUN, { events: next as unknown as typeof runEvents });
      expect([seq, state.todo]).toEqual([2, [{ ...todo[0], text: "Write it (from before)" }]]);
      expect(await log.head(`run/${RUN}`)).toMatchObject({ seq: 2, head: ["nobody"], damage: null });
      // With the next append the head goes on from there.
      await log.append(`run/${RUN}`, [NextTodoChanged.make({ call: "t2", todo, owner: "ann" })]);
      expect(await log.head(`run/${RUN}`)).toMatchObject({ seq: 3, head: ["nobody", "ann"] });
      expect((await foldRun(log, RUN, { events: next as unknown as typeof runEvents })).state.todo).toEqual(todo);
    });
  });

  test("what a newer Caisson wrote is an error that says so, and the run's head tells of it", async () => {
    await using(now(), async (log) => {
      await log.append(`run/${RUN}`, [created, NextTodoChanged.make({ call: "t1", todo, owner: "ann" })]);
      const message = `event 2 of run/${RUN} cannot be understood: it is todo.changed of version 2, and this Caisson knows versions up to 1`;
      await expect(foldRun(log, RUN)).rejects.toMatchObject({
        code: "internal",
        message,
        hint: "It was written by a newer Caisson; use that one.",
      });
      expect((await log.head(`run/${RUN}`))?.damage).toBe(message);
    });
  });

  test("an event that only a newer Caisson knows likewise, before anybody folds the run", async () => {
    await using(now(), async (log) => {
      await log.append(`run/${RUN}`, [created, { type: "run.dreamt", version: 1, data: {} }]);
      expect((await log.head(`run/${RUN}`))?.damage).toBe("event 2 (run.dreamt) cannot be understood");
      await expect(foldRun(log, RUN)).rejects.toThrow("this Caisson knows no event run.dreamt");
    });
  });
});
