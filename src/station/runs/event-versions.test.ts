import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { concerns, defineEvent } from "../../contract/event/define-event.ts";
import { eventFamily, readEvent } from "../../contract/event/event-family.ts";
import { RunCreated, RunEvent, type runEvents, TodoChanged } from "../../contract/run/run-event.ts";
import type { Log } from "../../log/log.ts";
import type { Projection } from "../../log/projection.ts";
import { createSqliteLog } from "../../log/sqlite/log.ts";
import { foldRun } from "./owned-journal.ts";

/** A newer Caisson's version of this event, which adds an owner to each todo list. */
const NextTodoChanged = defineEvent("todo.changed", 2, concerns("state", "console", "guardian"), {
  ...TodoChanged.shape.data.shape,
  owner: z.string(),
}).upcast(TodoChanged, (data) => ({
  ...data,
  todo: data.todo.map((item) => ({ ...item, text: `${item.text} (from before)` })),
  owner: "unknown",
}));
const next = eventFamily([...RunEvent.options.filter((each) => each !== TodoChanged), NextTodoChanged]);
/** The newer version's projection of a run: the owners of its todo lists. */
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

  test("upgrades older events, both in the fold and in a rebuilt head", async () => {
    await using(now(), async (log) => void (await log.append(`run/${RUN}`, [created, TodoChanged.make({ call: "t1", todo })])));
    await using(later(), async (log) => {
      const { state, seq } = await foldRun(log, RUN, { events: next as unknown as typeof runEvents });
      expect([seq, state.todo]).toEqual([2, [{ ...todo[0], text: "Write it (from before)" }]]);
      expect(await log.head(`run/${RUN}`)).toMatchObject({ seq: 2, head: ["unknown"], damage: null });
      // The next append updates the rebuilt head.
      await log.append(`run/${RUN}`, [NextTodoChanged.make({ call: "t2", todo, owner: "ann" })]);
      expect(await log.head(`run/${RUN}`)).toMatchObject({ seq: 3, head: ["unknown", "ann"] });
      expect((await foldRun(log, RUN, { events: next as unknown as typeof runEvents })).state.todo).toEqual(todo);
    });
  });

  test("reports an event version from a newer Caisson, also in the run's head", async () => {
    await using(now(), async (log) => {
      await log.append(`run/${RUN}`, [created, NextTodoChanged.make({ call: "t1", todo, owner: "ann" })]);
      const message = `event 2 of run/${RUN} cannot be understood: it has version 2 of todo.changed, but this Caisson only knows versions up to 1`;
      await expect(foldRun(log, RUN)).rejects.toMatchObject({
        code: "internal",
        message,
        hint: "A newer Caisson wrote it; use that version.",
      });
      expect((await log.head(`run/${RUN}`))?.damage).toBe(message);
    });
  });

  test("reports an event type that only a newer Caisson knows, before any fold", async () => {
    await using(now(), async (log) => {
      await log.append(`run/${RUN}`, [created, { type: "run.dreamt", version: 1, data: {} }]);
      expect((await log.head(`run/${RUN}`))?.damage).toBe("event 2 (run.dreamt) cannot be understood");
      await expect(foldRun(log, RUN)).rejects.toThrow("this Caisson does not know the event type run.dreamt");
    });
  });
});
