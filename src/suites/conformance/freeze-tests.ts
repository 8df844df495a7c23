import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import type { ConformanceTest } from "./context.ts";
import {
  eventually,
  finish,
  liveWith,
  reader,
  readText,
  rejectsWith,
  runOk,
  start,
  staysPending,
  uniqueSleep,
  within,
  writeText,
} from "./expectations.ts";

/** Pause and resume, snapshot and fork. */
export const freezeTests: ConformanceTest[] = [
  {
    name: "pause: nothing makes progress until resume",
    needs: "pause",
    async run(context) {
      const sandbox = await context.create();
      const running = await start(sandbox, "ticks");
      let ticks = 0;
      const counting = (async () => {
        for await (const chunk of running.output) ticks += chunk.data.length;
      })();
      await eventually(context, "it ticks", async () => ticks > 0);
      await within(context, "pausing", sandbox.pause());
      assert.equal(sandbox.info.state, "paused");
      let frozen = ticks;
      // Output that was in transit when the freeze began may still arrive.
      await eventually(context, "no output arrives while paused", async () => {
        frozen = ticks;
        await delay(500);
        return ticks === frozen;
      });
      await within(context, "resuming", sandbox.resume());
      assert.equal(sandbox.info.state, "running");
      await eventually(context, "it ticks again", async () => ticks > frozen);
      await running.kill();
      await within(context, "the end of the output", counting);
      return undefined;
    },
  },
  {
    name: "pause: all calls except lifecycle calls are a conflict",
    needs: "pause",
    async run(context) {
      const sandbox = await context.create();
      await within(context, "pausing", sandbox.pause());
      await rejectsWith(context, "conflict", "spawn while paused", () => start(sandbox, "exit", { args: ["0"] }));
      await rejectsWith(context, "conflict", "stat while paused", () => sandbox.stat("/workspace"));
      await rejectsWith(context, "conflict", "writing while paused", () => writeText(sandbox, "/workspace/x", ""));
      await within(context, "stats while paused", sandbox.stats());
      await within(context, "resuming", sandbox.resume());
      assert.equal(await runOk(context, sandbox, "print", "awake", ""), "awake");
      return undefined;
    },
  },
  {
    name: "pause: pause and resume are idempotent, and a paused sandbox can be destroyed",
    needs: "pause",
    async run(context) {
      const sandbox = await context.create();
      await within(context, "pausing", sandbox.pause());
      await within(context, "pausing again", sandbox.pause());
      await within(context, "resuming", sandbox.resume());
      await within(context, "resuming again", sandbox.resume());
      await within(context, "ping", sandbox.ping());
      await sandbox.pause();
      await within(context, "destroying", sandbox.destroy());
      assert.ok(!(await context.runtime.list()).some((each) => each.id === sandbox.id));
      return undefined;
    },
  },
  {
    name: "pause: unsupported if the runtime lacks it",
    needs: "!pause",
    async run(context) {
      const sandbox = await context.create();
      await rejectsWith(context, "unsupported", "pausing", () => sandbox.pause());
      await within(context, "ping", sandbox.ping());
      return undefined;
    },
  },
  {
    name: "fork: gets the current files, and no later changes from either side",
    needs: "snapshot",
    async run(context) {
      const sandbox = await context.create();
      await writeText(sandbox, "/workspace/shared", "before");
      const fork = context.adopt(await within(context, "forking", sandbox.fork()));
      assert.notEqual(fork.id, sandbox.id);
      assert.equal(await readText(context, fork, "/workspace/shared"), "before");
      await writeText(sandbox, "/workspace/shared", "changed in the first");
      await writeText(fork, "/workspace/only-in-fork", "x");
      assert.equal(await readText(context, fork, "/workspace/shared"), "before");
      await rejectsWith(context, "not_found", "the fork's file", () => sandbox.stat("/workspace/only-in-fork"));
      assert.equal(await readText(context, sandbox, "/workspace/shared"), "changed in the first");
      await fork.destroy();
      await within(context, "ping of the first", sandbox.ping());
      return undefined;
    },
  },
  {
    name: "fork: gets no processes, and the original's processes continue",
    needs: "snapshot",
    async run(context) {
      const sandbox = await context.create();
      const marker = uniqueSleep();
      const running = await start(sandbox, "copy", { stdin: "pipe" });
      const sleeper = await start(sandbox, "ready-and-sleep", { args: [marker] });
      await reader(context, sleeper).until("ready\n");
      const fork = context.adopt(await within(context, "forking", sandbox.fork()));
      assert.equal(await liveWith(fork, marker), 0);
      assert.equal(await liveWith(sandbox, marker), 1);
      await rejectsWith(context, "not_found", "attaching in the fork", () => fork.attach(running.ref));
      await running.write(Buffer.from("on"));
      await running.closeStdin();
      assert.equal((await finish(context, running)).stdout.toString(), "on");
      return undefined;
    },
  },
  {
    name: "snapshot: is listed with its name and outlives its sandbox",
    needs: "snapshot",
    async run(context) {
      const sandbox = await context.create();
      await writeText(sandbox, "/workspace/in-it", "then");
      const home = (await runOk(context, sandbox, "variable", "HOME")).trim();
      if (context.capabilities.isolation > 0) await writeText(sandbox, `${home}/in-home`, "home too");
      const id = await within(context, "the snapshot", sandbox.snapshot({ name: "before" }));
      try {
        await writeText(sandbox, "/workspace/in-it", "later");
        const listed = (await context.runtime.snapshots()).find((each) => each.id === id);
        assert.equal(listed?.name, "before");
        assert.equal(listed?.sandbox, sandbox.id);
        await sandbox.destroy();
        const restored = await context.create({ template: { kind: "snapshot", id } });
        assert.equal(await readText(context, restored, "/workspace/in-it"), "then");
        if (context.capabilities.isolation > 0) assert.equal(await readText(context, restored, `${home}/in-home`), "home too");
        await restored.destroy();
      } finally {
        await context.runtime.removeSnapshot(id);
      }
      assert.ok(!(await context.runtime.snapshots()).some((each) => each.id === id));
      await rejectsWith(context, "not_found", "a sandbox from a removed snapshot", () =>
        context.create({ template: { kind: "snapshot", id } }),
      );
      return undefined;
    },
  },
  {
    name: "snapshot: unsupported if the runtime lacks it",
    needs: "!snapshot",
    async run(context) {
      const sandbox = await context.create();
      await rejectsWith(context, "unsupported", "snapshot", () => sandbox.snapshot());
      await rejectsWith(context, "unsupported", "fork", () => sandbox.fork());
      assert.ok(await staysPending(sandbox.closed, 20), "the sandbox is still running");
      return undefined;
    },
  },
];
