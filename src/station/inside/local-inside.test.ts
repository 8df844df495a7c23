import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { memoryFolder } from "../../../test/support/memory-folder.ts";
import { makeEvent } from "../../contract/event/event-family.ts";
import { type NewRunEvent, runEvents } from "../../contract/run/run-event.ts";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { Log } from "../../log/log.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import { createStore } from "../../sandbox/store.ts";
import { RUN, runBegan } from "../guardian/testing-guardian.ts";
import { RUN_LABEL, runStream } from "../vocabulary/station-names.ts";
import { createLocalInside } from "./local-inside.ts";

const id = "sb_aaaaaaaaaaaa";
const stored = (event: NewRunEvent) => makeEvent(runEvents, event);

/** Simulates another writer that appends to the run before and after the event that a program inside reports. */
function contested(log: Log): Log {
  const somebody = () => log.append(runStream(RUN), [stored({ type: "run.labelled", data: { by: "ann", changes: {} } })]);
  let isFirst = true;
  return {
    ...log,
    async append(stream, events, options) {
      if (isFirst) await somebody();
      isFirst = false;
      const appended = await log.append(stream, events, options);
      await somebody();
      return appended;
    },
  };
}

test("report returns the number of the reported event despite concurrent writers", async () => {
  const stateDir = await mkdtemp(join(memoryFolder(), "caisson-test-inside-"));
  try {
    const log = createMemoryLog();
    await log.append(runStream(RUN), runBegan().map(stored));
    const store = createStore({ stateDir });
    await store.write({
      id,
      runtime: "fake",
      state: "running",
      createdAt: "2030-01-01T00:00:00.000Z",
      spec: SandboxConfig.parse({ labels: { [RUN_LABEL]: RUN } }),
      limits: { cpus: null, memoryBytes: null, pids: null, diskBytes: null, wallClockMs: 1000, outputBytes: null },
      warnings: [],
      owner: null,
      details: null,
    });
    const inside = createLocalInside({ stateDir, store, log: async () => contested(log), findRun: async () => RUN });
    const { seq } = await inside.report(id, { type: "task.progress", data: 1 });
    expect((await log.read(runStream(RUN))).map(({ type }) => type)).toEqual([
      "run.created",
      "run.claimed",
      "run.labelled",
      "sandbox.reported",
      "run.labelled",
    ]);
    expect(seq).toBe(4);
  } finally {
    await rm(stateDir, { recursive: true, force: true });
  }
});
