import assert from "node:assert/strict";
import type { Duplex } from "node:stream";
import type { OwnedSandbox, Process } from "../../sandbox/sandbox.ts";
import type { ConformanceContext, ConformanceTest, Skipped } from "./context.ts";
import { eventually, patternBytes, reader, rejectsWith, sameBytes, start, within } from "./expectations.ts";

const noServer: Skipped = { skipped: "no program inside can listen on a port: no python3, node, perl or busybox nc" };

/** Ports on the sandbox's loopback. */
export const portTests: ConformanceTest[] = [
  {
    name: "port: a connection carries bytes both ways, with half-close",
    async run(context) {
      const sandbox = await context.sandbox();
      const server = await serve(context, sandbox);
      if (server === null) return noServer;
      const bytes = patternBytes(1_500_000);
      const replies = await within(
        context,
        "the echo",
        Promise.all([
          exchange(await sandbox.connect(server.port), bytes),
          exchange(await sandbox.connect(server.port), Buffer.from("second")),
        ]),
      );
      sameBytes(replies[0], bytes, "the echo of the first");
      assert.equal(replies[1].toString(), "second");
      await server.process.kill();
      return undefined;
    },
  },
  {
    name: "port: a port without a listener is unavailable",
    async run(context) {
      const sandbox = await context.sandbox();
      await rejectsWith(context, "unavailable", "connecting to a dead port", () => sandbox.connect(9));
      return undefined;
    },
  },
  {
    name: "port: a number that is not a port is invalid",
    async run(context) {
      const sandbox = await context.sandbox();
      for (const port of [0, -1, 65_536, 1.5, Number.NaN]) {
        await rejectsWith(context, "invalid", `connecting to ${port}`, () => sandbox.connect(port));
      }
      return undefined;
    },
  },
  {
    name: "port: listeners are listed while they listen",
    async run(context) {
      const sandbox = await context.sandbox();
      const server = await serve(context, sandbox);
      if (server === null) return noServer;
      const has = async () => (await sandbox.listeners()).some((each) => each.port === server.port);
      await eventually(context, "the server is listed", has);
      await server.process.kill();
      await eventually(context, "the dead server is no longer listed", async () => !(await has()));
      return undefined;
    },
  },
];

/** Starts an echo server inside. Returns null if the template has no program for it. */
async function serve(context: ConformanceContext, sandbox: OwnedSandbox): Promise<{ port: number; process: Process } | null> {
  const running = await start(sandbox, "serve");
  const output = reader(context, running);
  let text = "";
  while (!text.endsWith("\n")) {
    const chunk = await output.next();
    if (chunk === null) {
      const ended = await running.ended;
      assert.ok(ended.kind === "exited" && ended.exitCode === 3, `the server ended: ${JSON.stringify(ended)}`);
      return null;
    }
    text += Buffer.from(chunk.data).toString();
  }
  return { port: Number(text.trim()), process: running };
}

/** Sends everything, closes the sending half, and returns the reply. */
async function exchange(connection: Duplex, bytes: Uint8Array): Promise<Buffer> {
  const parts: Buffer[] = [];
  connection.end(bytes);
  for await (const part of connection) parts.push(part as Buffer);
  return Buffer.concat(parts);
}
