import assert from "node:assert/strict";
import { ignore } from "../../lib/failures.ts";
import type { ConformanceTest } from "./context.ts";
import {
  describeEnd,
  finish,
  patternBytes,
  reader,
  rejectsWith,
  run,
  sameBytes,
  start,
  staysPending,
  within,
  writeText,
} from "./expectations.ts";

/** Standard input and terminals. */
export const stdinTests: ConformanceTest[] = [
  {
    name: "stdin: closed gives end-of-file immediately",
    async run(context) {
      const { stdout, ended } = await run(context, await context.sandbox(), "copy", { stdin: "closed" });
      assert.equal(stdout.length, 0);
      assert.equal(describeEnd(ended), "exited 0");
      return undefined;
    },
  },
  {
    name: "stdin: closed is the default, and writing to it is invalid",
    async run(context) {
      const sandbox = await context.sandbox();
      const running = await start(sandbox, "ready-and-sleep", { args: ["60"] });
      await reader(context, running).until("ready\n");
      await rejectsWith(context, "invalid", "writing without stdin", () => running.write(Buffer.from("x")));
      await running.kill();
      return undefined;
    },
  },
  {
    name: "stdin: a pipe delivers all bytes until it is closed",
    async run(context) {
      const running = await start(await context.sandbox(), "copy", { stdin: "pipe" });
      await within(context, "writing", running.write(Buffer.from("one ")));
      await within(context, "writing", running.write(Buffer.from("two")));
      await within(context, "closing", running.closeStdin());
      const { stdout, ended } = await finish(context, running);
      assert.equal(stdout.toString(), "one two");
      assert.equal(describeEnd(ended), "exited 0");
      return undefined;
    },
  },
  {
    name: "stdin: the reply to a line arrives before the next line is written",
    async run(context) {
      const running = await start(await context.sandbox(), "copy", { stdin: "pipe" });
      const output = reader(context, running);
      await running.write(Buffer.from("ping\n"));
      await output.until("ping\n");
      await running.write(Buffer.from("pong\n"));
      assert.equal(await output.until("pong\n"), "ping\npong\n");
      await running.kill();
      return undefined;
    },
  },
  {
    name: "stdin: ten megabytes in, ten megabytes out",
    async run(context) {
      const bytes = patternBytes(10_000_000);
      const running = await start(await context.sandbox(), "copy", { stdin: "pipe" });
      const finished = finish({ patienceMs: context.patienceMs * 2 }, running);
      await within(
        context,
        "writing ten megabytes",
        (async () => {
          for (let at = 0; at < bytes.length; at += 700_001) await running.write(bytes.subarray(at, at + 700_001));
          await running.closeStdin();
        })(),
      );
      sameBytes((await finished).stdout, bytes, "the output");
      return undefined;
    },
  },
  {
    name: "stdin: a write waits for a process that does not read",
    async run(context) {
      const sandbox = await context.sandbox();
      const go = `${await context.folder()}/go`;
      const running = await start(sandbox, "count-late", { stdin: "pipe", args: [go] });
      await reader(context, running).until("ready\n");
      const write = running.write(Buffer.alloc(8_000_000, "x"));
      void ignore(write, "awaited below");
      assert.ok(await staysPending(write), "eight megabytes were accepted without a reader");
      await writeText(sandbox, go, "");
      await within(context, "the write after the process starts reading", write);
      await running.closeStdin();
      const { stdout } = await finish(context, running, { stdout: 6, stderr: 0 });
      assert.equal(stdout.toString().trim(), "8000000");
      return undefined;
    },
  },
  {
    name: "stdin: writing to an ended process is gone",
    async run(context) {
      const running = await start(await context.sandbox(), "exit", { args: ["0"], stdin: "pipe" });
      await finish(context, running);
      await rejectsWith(context, "gone", "writing to an ended process", () => running.write(Buffer.from("x")));
      return undefined;
    },
  },
  {
    name: "terminal: a pty has the requested size and can be resized",
    async run(context) {
      const running = await start(await context.sandbox(), "terminal", { pty: { cols: 97, rows: 31 } });
      const output = reader(context, running);
      assert.match(await output.until("31 97\r\n"), /^terminal\r\n/);
      await within(context, "resizing", running.resize({ cols: 61, rows: 17 }));
      await within(context, "writing", running.write(Buffer.from("\n")));
      await output.until("17 61\r\n");
      while ((await output.next()) !== null);
      assert.equal(describeEnd(await within(context, "the end", running.ended)), "exited 0");
      return undefined;
    },
  },
  {
    name: "terminal: without a pty there is no terminal, and resizing is invalid",
    async run(context) {
      const sandbox = await context.sandbox();
      const { stdout } = await run(context, sandbox, "is-terminal", { stdin: "pipe" });
      assert.equal(stdout.toString().trim(), "plain");
      const running = await start(sandbox, "ready-and-sleep", { args: ["60"] });
      await reader(context, running).until("ready\n");
      await rejectsWith(context, "invalid", "resizing without a terminal", () => running.resize({ cols: 80, rows: 24 }));
      await running.kill();
      return undefined;
    },
  },
  {
    name: "terminal: Ctrl-C interrupts",
    async run(context) {
      const running = await start(await context.sandbox(), "ready-and-sleep", { args: ["60"], pty: { cols: 80, rows: 24 } });
      const output = reader(context, running);
      await output.until("ready\r\n");
      await running.write(Buffer.from("\x03"));
      while ((await output.next()) !== null);
      assert.equal(describeEnd(await within(context, "the end", running.ended)), "signaled SIGINT");
      return undefined;
    },
  },
];
