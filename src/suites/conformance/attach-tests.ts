import assert from "node:assert/strict";
import type { Ended } from "../../contract/outcome.ts";
import type { Process } from "../../sandbox/sandbox.ts";
import type { ConformanceTest } from "./context.ts";
import { describeEnd, eventually, finish, reader, readText, rejectsWith, run, start, within } from "./expectations.ts";

let refs = 0;
function freshRef(): string {
  refs += 1;
  return `conformance.${process.pid}.${Date.now()}.${refs}`;
}

/** Returns which part of its standard output a process still delivers, and how it ended. */
async function rangeOf(process: Process): Promise<{ from: number; to: number; ended: Ended }> {
  let from = -1;
  let to = -1;
  for await (const { stream, offset, data } of process.output) {
    if (stream !== "stdout") continue;
    if (from < 0) from = offset;
    else assert.equal(offset, to, "stdout continues at the previous offset");
    to = offset + data.length;
  }
  return { from, to, ended: await process.ended };
}

/** Refs: starting twice, detaching, attaching again, forgetting. */
export const attachTests: ConformanceTest[] = [
  {
    name: "attach: the same ref starts one process",
    async run(context) {
      const sandbox = await context.sandbox();
      const marks = `${await context.folder()}/marks`;
      const ref = freshRef();
      const first = await start(sandbox, "mark-and-copy", { ref, args: [marks], stdin: "pipe" });
      await reader(context, first).until("ready\n");
      const second = await start(sandbox, "mark-and-copy", { ref, args: [marks], stdin: "pipe" });
      assert.equal(second.pid, first.pid);
      assert.equal(second.ref, ref);
      assert.equal(await readText(context, sandbox, marks), "started\n");
      await second.kill();
      assert.equal(await readText(context, sandbox, marks), "started\n");
      return undefined;
    },
  },
  {
    name: "attach: starting the ref of an ended process returns its outcome",
    async run(context) {
      const sandbox = await context.sandbox();
      const ref = freshRef();
      const first = await start(sandbox, "exit", { ref, args: ["9"] });
      const pid = first.pid;
      await finish(context, first);
      const second = await start(sandbox, "exit", { ref, args: ["10"] });
      assert.equal(second.pid, pid);
      second.discardOutput();
      assert.equal(describeEnd(await within(context, "the end", second.ended)), "exited 9");
      return undefined;
    },
  },
  {
    name: "attach: after detach the output continues at the requested offset",
    async run(context) {
      const sandbox = await context.sandbox();
      const first = await start(sandbox, "copy", { stdin: "pipe" });
      await first.write(Buffer.from("one\n"));
      await reader(context, first).until("one\n");
      first.detach();
      const second = await within(context, "attaching", sandbox.attach(first.ref, { stdoutOffset: 4 }));
      assert.equal(second.pid, first.pid);
      await second.write(Buffer.from("two\n"));
      await second.closeStdin();
      const { stdout, ended } = await finish(context, second, { stdout: 4, stderr: 0 });
      assert.equal(stdout.toString(), "two\n");
      assert.equal(describeEnd(ended), "exited 0");
      assert.equal(ended.stdoutBytes, 8);
      return undefined;
    },
  },
  {
    name: "attach: unread output is complete even after the process ended",
    async run(context) {
      const sandbox = await context.sandbox();
      const first = await start(sandbox, "print", { args: ["to out", "to err"] });
      first.detach();
      const second = await within(context, "attaching", sandbox.attach(first.ref));
      const { stdout, stderr, ended } = await finish(context, second);
      assert.equal(stdout.toString(), "to out");
      assert.equal(stderr.toString(), "to err");
      assert.equal(describeEnd(ended), "exited 0");
      return undefined;
    },
  },
  {
    name: "attach: a detached process continues",
    async run(context) {
      const sandbox = await context.sandbox();
      const path = `${await context.folder()}/marks`;
      const first = await start(sandbox, "mark-and-copy", { args: [path], stdin: "pipe" });
      await reader(context, first).until("ready\n");
      first.detach();
      assert.ok((await sandbox.processes()).some((each) => each.ref === first.ref && each.state === "running"));
      const second = await sandbox.attach(first.ref, { stdoutOffset: 6 });
      await second.closeStdin();
      const { ended } = await finish(context, second, { stdout: 6, stderr: 0 });
      assert.equal(describeEnd(ended), "exited 0");
      return undefined;
    },
  },
  {
    name: "attach: another handle takes over exactly where the first one was",
    needs: "reattach",
    async run(context) {
      const sandbox = await context.create({ keep: true });
      const first = await start(sandbox, "copy", { stdin: "pipe" });
      await first.write(Buffer.from("one\n"));
      await reader(context, first).until("one\n");
      const other = context.adopt(await within(context, "opening", context.runtime.open(sandbox.id)));
      assert.equal(other.id, sandbox.id);
      const second = await within(context, "attaching", other.attach(first.ref, { stdoutOffset: 4 }));
      await second.write(Buffer.from("two\n"));
      await second.closeStdin();
      const { stdout, ended } = await finish(context, second, { stdout: 4, stderr: 0 });
      assert.equal(stdout.toString(), "two\n");
      assert.equal(describeEnd(ended), "exited 0");
      return undefined;
    },
  },
  {
    name: "attach: kept last output never blocks the process and reaches every client",
    async run(context) {
      const sandbox = await context.sandbox();
      const blocks = 64;
      const noted = `${await context.folder()}/noted`;
      const first = await start(sandbox, "blocks", { args: [String(blocks), noted], keepLastOutput: true });
      first.detach();
      await eventually(context, "the process ends without a reader", async () =>
        (await sandbox.processes()).some((each) => each.ref === first.ref && each.state === "ended" && each.keepsLastOutput),
      );
      for (let time = 0; time < 2; time++) {
        const again = await within(context, "attaching", sandbox.attach(first.ref));
        const { from, to, ended } = await within(context, "reading", rangeOf(again));
        assert.equal(to, blocks * 65_536);
        assert.ok(to - from >= 512 * 1024 && to - from <= 1024 * 1024, `${to - from} bytes were kept`);
        assert.equal(describeEnd(ended), "exited 0");
      }
      await rejectsWith(context, "gone", "attaching to dropped output", () => sandbox.attach(first.ref, { stdoutOffset: 0 }));
      return undefined;
    },
  },
  {
    name: "attach: a listener to a process that keeps its last output loses nothing",
    async run(context) {
      const sandbox = await context.sandbox();
      const blocks = 64;
      const noted = `${await context.folder()}/noted`;
      const running = await start(sandbox, "blocks", { args: [String(blocks), noted], keepLastOutput: true });
      const { stdout, ended } = await finish(context, running);
      assert.equal(stdout.length, blocks * 65_536);
      assert.equal(describeEnd(ended), "exited 0");
      return undefined;
    },
  },
  {
    name: "attach: without follow, the handle gets the output so far and detaches",
    async run(context) {
      const sandbox = await context.sandbox();
      const running = await start(sandbox, "print-then-copy", { args: ["one"], stdin: "pipe", keepLastOutput: true });
      await reader(context, running).until("one");
      running.detach();
      for (let time = 0; time < 2; time++) {
        const { stdout, ended } = await finish(context, await sandbox.attach(running.ref, { follow: false }));
        assert.equal(stdout.toString(), "one");
        assert.equal(ended.kind, "lost");
      }
      const last = await sandbox.attach(running.ref);
      await last.closeStdin();
      assert.equal(describeEnd((await finish(context, last)).ended), "exited 0");
      const afterwards = await finish(context, await sandbox.attach(running.ref, { follow: false }));
      assert.equal(describeEnd(afterwards.ended), "exited 0");
      return undefined;
    },
  },
  {
    name: "attach: an unknown ref is not_found",
    async run(context) {
      const sandbox = await context.sandbox();
      await rejectsWith(context, "not_found", "attaching to an unknown ref", () => sandbox.attach(freshRef()));
      await rejectsWith(context, "not_found", "forgetting nothing", () => sandbox.forget(freshRef()));
      return undefined;
    },
  },
  {
    name: "attach: a forgotten ref is gone permanently",
    async run(context) {
      const sandbox = await context.sandbox();
      const ref = freshRef();
      await run(context, sandbox, "exit", { ref, args: ["0"] });
      await within(context, "forgetting", sandbox.forget(ref));
      await rejectsWith(context, "gone", "starting a forgotten ref", () => start(sandbox, "exit", { ref, args: ["0"] }));
      await rejectsWith(context, "gone", "attaching to a forgotten ref", () => sandbox.attach(ref));
      assert.ok(!(await sandbox.processes()).some((each) => each.ref === ref));
      return undefined;
    },
  },
  {
    name: "attach: a running process cannot be forgotten",
    async run(context) {
      const sandbox = await context.sandbox();
      const running = await start(sandbox, "ready-and-sleep", { args: ["60"] });
      await reader(context, running).until("ready\n");
      await rejectsWith(context, "busy", "forgetting a running process", () => sandbox.forget(running.ref));
      await running.kill();
      return undefined;
    },
  },
];
