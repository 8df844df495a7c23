import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useWatch } from "../../../test/support/watched-station.ts";
import type { RunEvent } from "../../contract/run/run-event.ts";
import { bootId } from "../../lib/boot-id.ts";
import { startedProcess } from "../../sandbox/process-identity.ts";
import { runStream } from "../vocabulary/station-names.ts";

const { seconds, local, runtime, base, again } = useWatch({
  // Every command takes practically forever.
  programs: { bash: (io) => io.sleep(10_000_000).then(() => 0), sh: (io) => io.sleep(10_000_000).then(() => 0) },
});

async function started(turns: string): Promise<string> {
  const file = join(base(), "model.yaml");
  await writeFile(file, turns);
  return (await local().verbs.runs.start({ task: "Do it.", model: `scripted:${file}` })).run;
}
const sleeping =
  'turns: [{ calls: [{ tool: bash, arguments: { command: "make" } }] }, { calls: [{ tool: write, arguments: { path: a.txt, content: x } }] }, { say: Done. }]\n';

const eventsOf = async (run: string) => (await local().core.log.read(runStream(run))) as unknown as RunEvent[];
async function until<Type extends RunEvent["type"]>(run: string, type: Type): Promise<Extract<RunEvent, { type: Type }>> {
  for await (const event of local().verbs.runs.events(run, { follow: true })) if (event.type === type) return event as never;
  throw new Error(`no ${type}`);
}
const healthOf = async (run: string) =>
  (await eventsOf(run)).flatMap(({ type, data }) =>
    !type.startsWith("health.") ? [] : ["level" in data ? data.level : "outcome" in data ? data.outcome : type],
  );

describe("an unresponsive sandbox of a run", () => {
  test("is killed by the host, and the run continues in another on the same files", async () => {
    const run = await started(sleeping);
    const { sandbox } = (await until(run, "run.sandboxed")).data;
    await until(run, "tool.started");
    while (runtime().connections(sandbox) < 2) await seconds(1);
    await seconds(2);
    runtime().stop(sandbox);
    await seconds(17);
    expect(await healthOf(run)).toEqual(["late", "degraded", "unresponsive", "health.restart_started", "handed_over"]);
    expect(await local().verbs.runs.wait(run)).toMatchObject({ finish: "done", health: "ok" });
    expect((await eventsOf(run)).filter(({ type }) => type === "run.sandboxed").map(({ data }) => (data as { why: string }).why)).toEqual([
      "start",
      "lost",
    ]);
  });

  test("is left to a person after too many restarts, and the run waits for an answer", async () => {
    await again({ restartsPerHour: 0 });
    const run = await started(sleeping);
    const { sandbox } = (await until(run, "run.sandboxed")).data;
    await until(run, "tool.started");
    while (runtime().connections(sandbox) < 2) await seconds(1);
    await seconds(2);
    runtime().stop(sandbox);
    await seconds(17);
    expect((await healthOf(run)).slice(0, 4)).toEqual(["late", "degraded", "unresponsive", "health.escalated"]);
    const view = await local().verbs.runs.get(run);
    expect(view).toMatchObject({
      paused: { why: "stuck" },
      asked: [{ kind: "stuck", text: expect.stringContaining("Continue the run?") }],
    });
    await local().verbs.runs.answer(run, { answer: "deny", by: "user" });
    runtime().resume(sandbox);
    expect(await local().verbs.runs.wait(run)).toMatchObject({ finish: "stuck" });
  });
});

describe("a run's driver in a separate process", () => {
  test("is replaced by the station when it stops renewing its lease", async () => {
    const run = await started("turns: [{ say: Done. }, { say: Done again. }]\n");
    await local().verbs.runs.wait(run);
    await local().runs.reopen(run, { by: "test", text: "And again.", budgets: () => ({}) });
    // Imitates a hung driver: it has the lease, and does nothing.
    const child = spawn("sleep", ["1000"], { stdio: "ignore", detached: true });
    await once(child, "spawn");
    const identity = { ...startedProcess(child.pid as number), bootId: bootId(), host: hostname() };
    await local().core.log.acquire(runStream(run), { holder: JSON.stringify(identity), ttlMs: 60_000, holderGone: () => true });
    const exited = once(child, "exit");
    process.kill(child.pid as number, "SIGSTOP");
    await seconds(19);
    await exited;
    expect(await healthOf(run)).toEqual(["late", "degraded", "unresponsive", "health.restart_started", "restarted"]);
    expect(await local().verbs.runs.wait(run)).toMatchObject({ finish: "done", health: "ok" });
  });
});
