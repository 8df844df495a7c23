import assert from "node:assert/strict";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { ConformanceContext, ConformanceTest } from "./context.ts";
import { describeEnd, eventually, finish, liveWith, reader, rejectsWith, run, start, uniqueSleep, within } from "./expectations.ts";

/** Signals, timeouts, output limits and kill: the whole tree, and the reported reason. */
export const endingTests: ConformanceTest[] = [
  {
    name: "ending: a signal reaches the whole tree",
    async run(context) {
      const sandbox = await context.sandbox();
      const marker = uniqueSleep();
      const running = await start(sandbox, "exit-on-term", { args: [marker] });
      await readyWith(context, sandbox, running, marker);
      await within(context, "signalling", running.signal("SIGTERM"));
      running.discardOutput();
      assert.equal(describeEnd(await within(context, "the end", running.ended)), "exited 7");
      await eventually(context, "the child has ended too", async () => (await liveWith(sandbox, `sleep ${marker}`)) === 0);
      return undefined;
    },
  },
  {
    name: "ending: a signal to the leader leaves the rest alone",
    async run(context) {
      const sandbox = await context.sandbox();
      const marker = uniqueSleep();
      const running = await start(sandbox, "exit-on-term", { args: [marker] });
      await readyWith(context, sandbox, running, marker);
      await within(context, "signalling", running.signal("SIGTERM", { scope: "leader" }));
      running.discardOutput();
      assert.equal(describeEnd(await within(context, "the end", running.ended)), "exited 7");
      assert.equal(await liveWith(sandbox, `sleep ${marker}`), 1);
      await within(context, "killing what was left behind", running.kill());
      assert.equal(await liveWith(sandbox, `sleep ${marker}`), 0);
      return undefined;
    },
  },
  {
    name: "ending: an unknown signal is invalid, but a signal after the end is not",
    async run(context) {
      const running = await start(await context.sandbox(), "ready-and-sleep", { args: ["60"] });
      await reader(context, running).until("ready\n");
      await rejectsWith(context, "invalid", "an unknown signal", () => running.signal("SIGNOPE" as NodeJS.Signals));
      await running.kill();
      await within(context, "signalling an ended process", running.signal("SIGTERM"));
      return undefined;
    },
  },
  {
    name: "ending: a timeout kills the whole tree, including new sessions and orphans",
    async run(context) {
      const sandbox = await context.sandbox();
      const marker = uniqueSleep();
      const running = await start(sandbox, "family", { args: [marker], timeoutMs: 600 });
      const { ended } = await finish(context, running);
      assert.equal(describeEnd(ended), "timedOut");
      assert.ok(ended.durationMs >= 550, `ended after ${ended.durationMs} ms of 600`);
      await eventually(context, "no descendant outlives the timeout", async () => (await liveWith(sandbox, `sleep ${marker}`)) === 0);
      return undefined;
    },
  },
  {
    name: "ending: a process that ignores SIGTERM does not outlive its timeout",
    async run(context) {
      const { ended } = await run(context, await context.sandbox(), "ignore-term", { timeoutMs: 400 });
      assert.equal(describeEnd(ended), "timedOut");
      return undefined;
    },
  },
  {
    name: "ending: kill resolves when every process of the tree has ended",
    async run(context) {
      const sandbox = await context.sandbox();
      const marker = uniqueSleep();
      const running = await start(sandbox, "family", { args: [marker] });
      await readyWith(context, sandbox, running, marker, 2);
      await within(context, "killing", running.kill());
      assert.equal(await liveWith(sandbox, `sleep ${marker}`), 0);
      running.discardOutput();
      assert.equal(describeEnd(await within(context, "the end", running.ended)), "killed cancelled");
      await within(context, "killing twice", running.kill());
      return undefined;
    },
  },
  {
    name: "ending: processes that the leader left behind run until their ref is killed",
    async run(context) {
      const sandbox = await context.sandbox();
      const marker = uniqueSleep();
      const running = await start(sandbox, "abandon", { args: [marker] });
      const { ended } = await finish(context, running);
      assert.equal(describeEnd(ended), "exited 0");
      await eventually(context, "the child survives", async () => (await liveWith(sandbox, `sleep ${marker}`)) === 1);
      await within(context, "killing", running.kill());
      assert.equal(await liveWith(sandbox, `sleep ${marker}`), 0);
      assert.equal(describeEnd(await running.ended), "exited 0");
      return undefined;
    },
  },
  {
    name: "ending: the output limit delivers exactly that many bytes, then kills",
    async run(context) {
      for (const limit of [1, 65_537, 1_500_000]) {
        const { stdout, ended } = await run(context, await context.sandbox(), "zeros", { args: ["8000000"], outputBytesMax: limit });
        assert.equal(describeEnd(ended), "killed output");
        assert.equal(stdout.length, limit);
      }
      return undefined;
    },
  },
  {
    name: "ending: output of exactly the limit is allowed",
    async run(context) {
      const { stdout, ended } = await run(context, await context.sandbox(), "zeros", { args: ["70000"], outputBytesMax: 70_000 });
      assert.equal(stdout.length, 70_000);
      assert.equal(describeEnd(ended), "exited 0");
      return undefined;
    },
  },
  {
    name: "ending: the sandbox's wall-clock limit applies even to a longer timeout",
    async run(context) {
      const sandbox = await context.create({ limits: { wallClockMs: 500 } });
      assert.equal(sandbox.info.limits.wallClockMs, 500);
      assert.equal(describeEnd((await run(context, sandbox, "sleep", { args: ["60"] })).ended), "timedOut");
      assert.equal(describeEnd((await run(context, sandbox, "sleep", { args: ["60"], timeoutMs: 50_000 })).ended), "timedOut");
      return undefined;
    },
  },
  {
    name: "ending: the sandbox's output limit applies to every command",
    async run(context) {
      const sandbox = await context.create({ limits: { outputBytes: 10_000 } });
      assert.equal(sandbox.info.limits.outputBytes, 10_000);
      const { stdout, ended } = await run(context, sandbox, "zeros", { args: ["20000"] });
      assert.equal(stdout.length, 10_000);
      assert.equal(describeEnd(ended), "killed output");
      return undefined;
    },
  },
];

type Started = Awaited<ReturnType<Sandbox["spawn"]>>;

/** Waits until the program is ready and its sleepers are listed. */
async function readyWith(context: ConformanceContext, sandbox: Sandbox, running: Started, marker: string, sleepers = 1): Promise<void> {
  await reader(context, running).until("ready\n");
  await eventually(context, "the children are running", async () => (await liveWith(sandbox, `sleep ${marker}`)) >= sleepers);
}
