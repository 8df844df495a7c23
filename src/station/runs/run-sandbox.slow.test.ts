import { describe, expect, test } from "vitest";
import { createTestStation, type TestStation } from "../../../test/support/testing-runs.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { RunEvent } from "../../contract/run/run-event.ts";
import type { Log } from "../../log/log.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import { guestMismatch } from "../../sandbox/guest/guest-mismatch.ts";

const never = new AbortController().signal;
const write = (path: string, content: string) => ({ tool: "write", arguments: { path, content } });
const read = (path: string) => ({ tool: "read", arguments: { path } });
const of = <Type extends RunEvent["type"]>(events: readonly RunEvent[], type: Type) =>
  events.filter((event): event is Extract<RunEvent, { type: Type }> => event.type === type);
const sandboxOf = async (station: TestStation) => (await station.runtime.list())[0]?.id ?? "";
const broken = (methods: Partial<Log>): { log: Log; real: Log } => {
  const real = createMemoryLog();
  return { real, log: { ...real, ...methods } };
};

describe("a sandbox that dies", () => {
  const script = {
    turns: [{ calls: [write("a.txt", "kept\n")] }, { calls: [read("a.txt")] }, { calls: [read("a.txt")] }, { say: "Done." }],
  };
  const killAt = (number: number, files: "left" | "gone") => {
    let calls = 0;
    let station: TestStation;
    const before = async () => {
      calls += 1;
      if (calls === number) await station.runtime.kill(await sandboxOf(station), { files });
      return { kind: "continue" } as const;
    };
    const watch = (newStation: TestStation) => {
      station = newStation;
    };
    return { hooks: { before: [before] }, watch };
  };

  test("has its files saved, and the next sandbox starts from them", async () => {
    const { hooks, watch } = killAt(2, "left");
    await using station = await createTestStation({ script, hooks });
    watch(station);
    const { state, events } = await station.finish();
    expect(state.ended?.reason).toBe("done");
    const results = of(events, "tool.ended").map((event) => event.data.text);
    expect(results[1]).toContain("on the same workspace");
    expect(results[2]).toContain("kept");
    expect(of(events, "run.sandboxed").map(({ data }) => [data.why, data.files])).toEqual([
      ["start", undefined],
      ["lost", "kept"],
    ]);
    // Only the snapshot that the next run starts from remains.
    expect(await station.runtime.snapshots()).toHaveLength(1);
  });

  test("is reported to the agent if its files cannot be saved", async () => {
    const { hooks, watch } = killAt(2, "gone");
    await using station = await createTestStation({ script, hooks, files: { "a.txt": "as it was\n" } });
    watch(station);
    const { events } = await station.finish();
    const results = of(events, "tool.ended").map((event) => event.data.text);
    expect(results[1]).toMatch(/all changes since .* are lost/);
    expect(results[2]).toContain("as it was");
    expect(of(events, "message.received")[0]?.data).toMatchObject({ source: "system", text: expect.stringContaining("is gone") });
    expect(of(events, "run.sandboxed")[1]?.data.files).toBe("gone");
  });

  test("without a driver has its files saved by the next holder", async () => {
    await using station = await createTestStation({
      script: {
        turns: [
          { calls: [write("a.txt", "kept\n")] },
          { say: "slow words here", pauseMs: 300 },
          { calls: [read("a.txt")] },
          { say: "Done." },
        ],
      },
    });
    const run = await station.start();
    const releaseController = new AbortController();
    const first = station.runs.drive(run, { signal: releaseController.signal }).catch(() => undefined);
    await station.until(run, "model.requested", (event) => event.data.step === 2);
    releaseController.abort();
    await first;
    await station.runtime.kill(await sandboxOf(station));
    const second = station.second();
    await second.send(run, { text: "and read it", mode: "queue", source: "user" });
    await second.drive(run, { signal: never });
    const events = await station.events(run);
    expect(of(events, "tool.ended").at(-1)?.data.text).toContain("kept");
    expect(of(events, "run.sandboxed").at(-1)?.data).toMatchObject({ why: "lost", files: "kept" });
  });

  test("loses its files if removed without a driver, and the agent learns of it", async () => {
    await using station = await createTestStation({
      script: { turns: [{ calls: [write("a.txt", "lost\n")] }, { say: "slow words here", pauseMs: 300 }] },
    });
    const run = await station.start();
    const releaseController = new AbortController();
    const first = station.runs.drive(run, { signal: releaseController.signal }).catch(() => undefined);
    await station.until(run, "model.requested", (event) => event.data.step === 2);
    releaseController.abort();
    await first;
    await (await station.runtime.open(await sandboxOf(station))).destroy();
    await station.second().drive(run, { signal: never });
    const events = await station.events(run);
    expect(of(events, "run.sandboxed").at(-1)?.data).toMatchObject({ why: "lost", files: "gone" });
    const [message] = of(events, "message.received");
    expect(message?.data.text).toContain("is gone");
    expect(of(events, "model.requested").at(-1)?.data.messages).toEqual([message?.data.message]);
  });

  test("before the first step is replaced once", async () => {
    let sandboxCount = 0;
    let station: TestStation;
    const options: Parameters<typeof createTestStation>[0] = {
      script: { turns: [{ say: "Done." }] },
      files: { "AGENTS.md": "rules" },
      wrapRuntime: (runtime) => ({
        ...runtime,
        async create(...args) {
          const sandbox = await runtime.create(...args);
          sandboxCount += 1;
          if (sandboxCount === 1) setImmediate(() => void station.runtime.kill(sandbox.id));
          if (sandboxCount === 1) await sandbox.closed;
          return sandbox;
        },
      }),
    };
    await using running = await createTestStation(options);
    station = running;
    const { state } = await running.finish();
    expect(state.ended?.reason).toBe("done");
    expect(sandboxCount).toBe(2);
    expect(await running.runtime.list()).toEqual([]);
  });

  test("is not assumed to be dead when something else fails", async () => {
    let failing = false;
    await using station = await createTestStation({
      script: { turns: [{ calls: [write("a.txt", "a")] }, { say: "slow words here", pauseMs: 300 }] },
      wrapRuntime: (runtime) => ({
        ...runtime,
        async open(id, options) {
          if (failing) throw new CaissonError("unavailable", "the network cannot be served: there is no file /ca.pem");
          return await runtime.open(id, options);
        },
      }),
    });
    const run = await station.start();
    const releaseController = new AbortController();
    const first = station.runs.drive(run, { signal: releaseController.signal }).catch(() => undefined);
    await station.until(run, "tool.ended");
    releaseController.abort();
    await first;
    const before = await sandboxOf(station);
    failing = true;
    await expect(station.second().drive(run, { signal: never })).rejects.toMatchObject({ code: "unavailable" });
    expect(await sandboxOf(station)).toBe(before);
    failing = false;
    expect((await station.second({ pid: 3 }).drive(run, { signal: never })).ended?.reason).toBe("done");
  });
});

describe("a failing setup", () => {
  const failing = (error: CaissonError) => {
    const failure: { error: CaissonError | null } = { error };
    const { log, real } = broken({
      async append(stream, events, options) {
        if (failure.error !== null && events.some(({ type }) => type === "run.sandboxed")) throw failure.error;
        return await real.append(stream, events, options);
      },
    });
    return { log, failure };
  };

  test("ends the run without a sandbox, and is retried when the run is resumed", async () => {
    const { log, failure } = failing(new CaissonError("unavailable", "not now"));
    await using station = await createTestStation({ log, script: { turns: [{ say: "Done." }] } });
    const { runs } = station.verbs;
    const run = await station.start();
    expect((await station.runs.drive(run, { signal: never })).ended).toEqual({ reason: "error", text: "Not now." });
    expect(await station.runtime.list()).toEqual([]);
    failure.error = null;
    await runs.resume(run, { by: "me" });
    expect(await runs.wait(run)).toMatchObject({ finish: "done" });
  });

  test("leaves the run open without a sandbox if the log is the cause", async () => {
    const { log, failure } = failing(new CaissonError("unavailable", "not now", { details: { log: true } }));
    await using station = await createTestStation({ log, script: { turns: [{ say: "Done." }] } });
    const run = await station.start();
    for (let attempt = 0; attempt < 2; attempt++) {
      await expect(station.runs.drive(run, { signal: never })).rejects.toMatchObject({ message: "not now" });
      expect(await station.runtime.list()).toEqual([]);
    }
    failure.error = null;
    expect((await station.runs.drive(run, { signal: never })).ended).toEqual({ reason: "done", text: "Done." });
  });

  test("of a released run leaves the sandbox to the next holder", async () => {
    await using station = await createTestStation({ script: { turns: [{ say: "one two three", pauseMs: 5_000 }] } });
    const run = await station.start();
    const releaseController = new AbortController();
    const driven = station.runs.drive(run, { signal: releaseController.signal }).catch((error: unknown) => error);
    await station.until(run, "run.sandboxed");
    releaseController.abort();
    await driven;
    expect(await station.runtime.list()).toHaveLength(1);
  });
});

describe("a sandbox started by another version of Caisson", () => {
  const script = {
    turns: [{ calls: [write("a.txt", "kept\n")] }, { say: "slow words here", pauseMs: 300 }, { calls: [read("a.txt")] }, { say: "Done." }],
  };
  /** Makes the running guest an old one. Guests that start later are current. */
  const createUpgraded = async (refusal: { open?: true; restart?: CaissonError }) => {
    let isOld = false;
    const mismatch = () => guestMismatch("the guest speaks protocol version 0, not 1");
    const station = await createTestStation({
      script,
      wrapRuntime: (runtime) => ({
        ...runtime,
        async open(id, options) {
          if (isOld && refusal.open) throw mismatch();
          const sandbox = await runtime.open(id, options);
          const fence: typeof sandbox.fence = async (owner) => {
            if (isOld) throw mismatch();
            await sandbox.fence(owner);
          };
          return { ...sandbox, fence };
        },
        async restart(id, how) {
          if (refusal.restart !== undefined) throw refusal.restart;
          await runtime.restart?.(id, how);
          isOld = false;
        },
      }),
    });
    const run = await station.start();
    const releaseController = new AbortController();
    const first = station.runs.drive(run, { signal: releaseController.signal }).catch(() => undefined);
    await station.until(run, "model.requested", (event) => event.data.step === 2);
    releaseController.abort();
    await first;
    isOld = true;
    return { station, run, sandbox: await sandboxOf(station) };
  };

  test.each([{ open: true }, {}] as const)("is restarted with its files, and the run continues (%o)", async (refusal) => {
    const { station, run, sandbox } = await createUpgraded(refusal);
    await using _station = station;
    const second = station.second();
    await second.send(run, { text: "and read it", mode: "queue", source: "user" });
    expect((await second.drive(run, { signal: never })).ended?.reason).toBe("done");
    const events = await station.events(run);
    expect(of(events, "tool.ended").at(-1)?.data.text).toContain("kept");
    expect(of(events, "run.sandboxed").slice(1)).toMatchObject([{ data: { sandbox, why: "lost", files: "kept", restarted: true } }]);
    expect(of(events, "run.noticed")[0]?.data.text).toContain(`Another version of Caisson started sandbox ${sandbox}`);
  });

  test("is refused with a working hint if its files would not survive a restart", async () => {
    const restart = new CaissonError("unsupported", "its files are in memory");
    const { station, run, sandbox } = await createUpgraded({ restart });
    await using _station = station;
    const refused = await station
      .second()
      .drive(run, { signal: never })
      .catch((error: unknown) => error);
    expect(refused).toMatchObject({
      code: "unsupported",
      message: `another version of Caisson started sandbox ${sandbox} of this run, and it cannot be restarted: its files are in memory`,
      hint: expect.stringContaining(`\`caisson sandbox rm ${sandbox}\``),
    });
    expect(of(await station.events(run), "run.noticed")).toEqual([]);
    await (await station.runtime.open(sandbox)).destroy();
    expect((await station.second({ pid: 3 }).drive(run, { signal: never })).ended?.reason).toBe("done");
  });

  test("is removed without its guest when its run is stopped", async () => {
    const { station, run } = await createUpgraded({ open: true });
    await using _station = station;
    const second = station.second();
    await second.stop(run, { by: "me" });
    expect((await second.drive(run, { signal: never })).ended?.reason).toBe("cancelled");
    expect(await station.runtime.list()).toEqual([]);
  });
});
