import assert from "node:assert/strict";
import { Capabilities, SandboxInfo, SandboxStats } from "../../contract/sandbox/sandbox.ts";
import type { ConformanceTest } from "./context.ts";
import { describeEnd, eventually, reader, readText, rejectsWith, runOk, start, within, writeText } from "./expectations.ts";

/** Creating, opening, listing, destroying, and the reports of a live sandbox. */
export const lifecycleTests: ConformanceTest[] = [
  {
    name: "life: capabilities are well-formed and the probe finds the runtime usable",
    async run(context) {
      Capabilities.parse(await within(context, "capabilities", context.runtime.capabilities()));
      const probe = await within({ patienceMs: context.patienceMs * 3 }, "the probe", context.runtime.probe());
      assert.equal(probe.usable, true, JSON.stringify(probe.findings));
      assert.ok(probe.startMs === null || probe.startMs > 0);
      return undefined;
    },
  },
  {
    name: "life: info is well-formed and matches the request",
    async run(context) {
      const sandbox = await context.create({ labels: { purpose: "conformance" } });
      const info = SandboxInfo.parse(sandbox.info);
      assert.equal(info.id, sandbox.id);
      assert.equal(info.runtime, context.runtime.name);
      assert.equal(info.state, "running");
      assert.deepEqual(info.labels, { purpose: "conformance" });
      assert.ok(Math.abs(Date.parse(info.createdAt) - Date.now()) < 60_000);
      assert.deepEqual(info.network, { mode: "none" });
      return undefined;
    },
  },
  {
    name: "life: sandboxes are isolated from each other",
    async run(context) {
      const [one, two] = [await context.create(), await context.create()];
      assert.notEqual(one.id, two.id);
      await writeText(one, "/workspace/only-in-one", "x");
      await rejectsWith(context, "not_found", "the other's file", () => two.stat("/workspace/only-in-one"));
      await one.destroy();
      await writeText(two, "/workspace/alive", "x");
      return undefined;
    },
  },
  {
    name: "life: ping answers and updates lastHeardMs",
    async run(context) {
      const sandbox = await context.sandbox();
      const before = Date.now();
      const { roundTripMs } = await within(context, "ping", sandbox.ping());
      assert.ok(roundTripMs >= 0 && roundTripMs < context.patienceMs);
      assert.ok(sandbox.lastHeardMs() >= before - 1 && sandbox.lastHeardMs() <= Date.now(), "lastHeardMs is the time of the ping");
      return undefined;
    },
  },
  {
    name: "life: stats are well-formed and count processes and processor time",
    async run(context) {
      const sandbox = await context.create();
      const before = SandboxStats.parse(await within(context, "stats", sandbox.stats()));
      const running = await Promise.all([1, 2, 3].map(() => start(sandbox, "burn")));
      if (before.cpuMs !== null) {
        const was = before.cpuMs;
        await eventually(context, "processor time grows", async () => ((await sandbox.stats()).cpuMs ?? 0) > was + 50);
      }
      // The guest's own processes may change in between, so we compare the count with these processes and without them.
      const { processes } = await within(context, "stats", sandbox.stats());
      await Promise.all(running.map((each) => each.kill()));
      await eventually(context, "the processes are counted", async () => (await sandbox.stats()).processes < processes);
      return undefined;
    },
  },
  {
    name: "life: list contains a live sandbox, but not a destroyed one",
    async run(context) {
      const sandbox = await context.create();
      const ids = async () => (await context.runtime.list()).map((each) => each.id);
      assert.ok((await ids()).includes(sandbox.id));
      await sandbox.destroy();
      assert.ok(!(await ids()).includes(sandbox.id));
      return undefined;
    },
  },
  {
    name: "life: destroy is idempotent, ends processes and resolves closed",
    async run(context) {
      const sandbox = await context.create();
      const running = await start(sandbox, "ready-and-sleep", { args: ["60"] });
      await reader(context, running).until("ready\n");
      await within(context, "destroying", sandbox.destroy());
      await within(context, "destroying again", sandbox.destroy());
      assert.deepEqual(await within(context, "closed", sandbox.closed), { why: "destroyed" });
      running.discardOutput();
      const ended = await within(context, "the process's end", running.ended);
      assert.ok(["lost", "killed cancelled", "signaled SIGTERM", "signaled SIGKILL"].includes(describeEnd(ended)), describeEnd(ended));
      return undefined;
    },
  },
  {
    name: "life: two concurrent destroys both resolve",
    async run(context) {
      const sandbox = await context.create();
      await within(context, "two concurrent destroys", Promise.all([sandbox.destroy(), sandbox.destroy()]));
      assert.ok(!(await context.runtime.list()).some((each) => each.id === sandbox.id));
      return undefined;
    },
  },
  {
    name: "life: every call on a destroyed sandbox is lost",
    async run(context) {
      const sandbox = await context.create();
      await sandbox.destroy();
      const calls: Record<string, () => Promise<unknown>> = {
        spawn: () => start(sandbox, "exit", { args: ["0"] }),
        attach: () => sandbox.attach("some.ref"),
        forget: () => sandbox.forget("some.ref"),
        processes: () => sandbox.processes(),
        stat: () => sandbox.stat("/workspace"),
        list: () => sandbox.list("/workspace"),
        mkdir: () => sandbox.mkdir("/workspace/x"),
        move: () => sandbox.move("/workspace/x", "/workspace/y"),
        remove: () => sandbox.remove("/workspace/x"),
        readFile: () => sandbox.readFile("/workspace/x"),
        writeFile: () => writeText(sandbox, "/workspace/x", ""),
        watch: () => sandbox.watch("/workspace"),
        tarIn: () => sandbox.tarIn("/workspace", Buffer.alloc(1024)),
        tarOut: () => sandbox.tarOut("/workspace"),
        ping: () => sandbox.ping(),
        connect: () => sandbox.connect(80),
        listeners: () => sandbox.listeners(),
        stats: () => sandbox.stats(),
      };
      for (const [name, call] of Object.entries(calls)) await rejectsWith(context, "lost", name, call);
      return undefined;
    },
  },
  {
    name: "life: leaving the scope destroys the sandbox",
    async run(context) {
      let id = "";
      {
        await using sandbox = await context.runtime.create(context.configOf());
        id = sandbox.id;
      }
      assert.notEqual(id, "");
      assert.ok(!(await context.runtime.list()).some((each) => each.id === id));
      return undefined;
    },
  },
  {
    name: "life: a kept sandbox can be released and reopened with its files and processes",
    needs: "reattach",
    async run(context) {
      const sandbox = await context.create({ keep: true });
      await writeText(sandbox, "/workspace/kept", "still here");
      const running = await start(sandbox, "ready-and-sleep", { args: ["60"] });
      await reader(context, running).until("ready\n");
      await within(context, "releasing", sandbox.release());
      assert.ok((await context.runtime.list()).some((each) => each.id === sandbox.id));
      assert.ok(!(await within(context, "sweeping", context.runtime.sweep())).includes(sandbox.id), "a kept sandbox was swept");
      const again = context.adopt(await within(context, "opening", context.runtime.open(sandbox.id)));
      assert.equal(await readText(context, again, "/workspace/kept"), "still here");
      assert.ok((await again.processes()).some((each) => each.ref === running.ref && each.state === "running"));
      assert.equal(again.info.keep, true);
      return undefined;
    },
  },
  {
    name: "life: release without keep is invalid",
    async run(context) {
      const sandbox = await context.create({ keep: false });
      await rejectsWith(context, "invalid", "releasing", () => sandbox.release());
      await within(context, "ping after a rejected release", sandbox.ping());
      return undefined;
    },
  },
  {
    name: "life: detaching a handle leaves the sandbox and its other handles alone",
    needs: "reattach",
    async run(context) {
      const sandbox = await context.create({ keep: false });
      const running = await start(sandbox, "ready-and-sleep", { args: ["60"] });
      await reader(context, running).until("ready\n");
      const other = await within(context, "opening", context.runtime.open(sandbox.id));
      await within(context, "detaching", other.detach());
      await within(context, "detaching again", other.detach());
      await rejectsWith(context, "lost", "using a detached handle", () => other.processes());
      assert.ok((await sandbox.processes()).some((each) => each.ref === running.ref && each.state === "running"));
      assert.ok((await context.runtime.list()).some((each) => each.id === sandbox.id));
      return undefined;
    },
  },
  {
    name: "life: opening a missing sandbox is not_found",
    async run(context) {
      await rejectsWith(context, "not_found", "opening an unknown id", () => context.runtime.open("sb_aaaaaaaaaaaa"));
      const sandbox = await context.create();
      await sandbox.destroy();
      await rejectsWith(context, "not_found", "opening a destroyed sandbox", () => context.runtime.open(sandbox.id));
      return undefined;
    },
  },
  {
    name: "life: an aborted create is cancelled and leaves nothing behind",
    async run(context) {
      const before = new Set((await context.runtime.list()).map((each) => each.id));
      const news = async () => (await context.runtime.list()).filter((each) => !before.has(each.id));
      await rejectsWith(context, "cancelled", "creating with an aborted signal", async () =>
        context.adopt(await context.runtime.create(context.configOf(), { signal: AbortSignal.abort() })),
      );
      assert.deepEqual(await news(), []);
      for (const afterMs of [0, 2, 10, 40]) {
        const aborting = new AbortController();
        const timer = setTimeout(() => aborting.abort(), afterMs);
        const created = context.runtime.create(context.configOf(), { signal: aborting.signal });
        const sandbox = await within(context, "an aborted create", created).catch((error: { code?: string }) => {
          if (error.code !== "cancelled") throw error;
          return null;
        });
        clearTimeout(timer);
        await sandbox?.destroy();
        assert.deepEqual(await news(), [], `left behind by a create aborted after ${afterMs} ms`);
      }
      return undefined;
    },
  },
  {
    name: "life: sweep leaves live sandboxes alone",
    async run(context) {
      const sandbox = await context.create();
      const removed = await within(context, "sweeping", context.runtime.sweep());
      assert.ok(!removed.includes(sandbox.id), "a live sandbox was swept");
      assert.equal(await runOk(context, sandbox, "print", "alive", ""), "alive");
      return undefined;
    },
  },
  {
    name: "life: a failed create leaves nothing behind",
    async run(context) {
      const before = new Set((await context.runtime.list()).map((each) => each.id));
      await rejectsWith(context, ["invalid", "not_found"], "a missing workspace", () =>
        context.create({
          workspace: { kind: "folder", path: "/caisson/no/such/folder", access: context.capabilities.workspaceAccess[0] ?? "overlay" },
        }),
      );
      assert.deepEqual(
        (await context.runtime.list()).filter((each) => !before.has(each.id)),
        [],
      );
      return undefined;
    },
  },
];
