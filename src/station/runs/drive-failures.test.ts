import { expect, test } from "vitest";
import { createTestStation, never } from "../../../test/support/testing-runs.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { RunEvent } from "../../contract/run/run-event.ts";

const script = { turns: [{ say: "Done." }] };
const failuresIn = (events: readonly RunEvent[]) => events.flatMap((event) => (event.type === "run.drive_failed" ? [event.data] : []));

test("the run log says why a process could not drive the run", async () => {
  await using station = await createTestStation({ script });
  const run = await station.start();
  const { session } = await station.runs.facts(run);
  {
    await using _ = await station.sessions.lock(session, "run_other");
    await expect(station.runs.drive(run, { signal: never })).rejects.toMatchObject({ code: "conflict" });
  }
  expect(failuresIn(await station.events(run))).toEqual([
    { code: "conflict", text: expect.stringContaining("is in use by run_other"), retryable: false },
  ]);
  expect((await station.runs.drive(run, { signal: never })).status).toBe("ended");
});

test("the run log says what failed after the run's end", async () => {
  const crashpoint = (name: string) => {
    if (name === "session.cleanup:before") throw new CaissonError("no_space", "the disk is full");
  };
  await using station = await createTestStation({ script, crashpoint });
  const { run } = await station.verbs.runs.start({ task: "x", cleanup: "always" });
  await expect(station.verbs.runs.wait(run)).rejects.toMatchObject({ code: "no_space" });
  const events = await station.events(run);
  expect(events.map(({ type }) => type).slice(-2)).toEqual(["run.ended", "run.drive_failed"]);
  expect(failuresIn(events)).toMatchObject([{ code: "no_space", text: "The disk is full." }]);
});

test("a released run has no failure in its log", async () => {
  await using station = await createTestStation({ script });
  const run = await station.start();
  await expect(station.runs.drive(run, { signal: AbortSignal.abort() })).rejects.toThrow();
  expect(failuresIn(await station.events(run))).toEqual([]);
});
