import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { CaissonError } from "../../contract/error/error.ts";
import type { InboundConnection, OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { ConformanceContext, ConformanceTest, Skipped } from "./context.ts";
import { dial, noClient } from "./dial.ts";
import { patternBytes, reader, rejectsWith, sameBytes, start, within } from "./expectations.ts";

const noNetwork: Skipped = { skipped: "the runtime's sandboxes have no separate network" };

/** Ports inside that the host serves. */
export const serveTests: ConformanceTest[] = [
  {
    name: "serve: connections from inside carry bytes both ways, with half-close",
    async run(context) {
      const sandbox = await context.sandbox();
      const claim = await claimPort(sandbox, 19_901, echoAtTheEnd);
      if (claim === null) return noNetwork;
      const large = patternBytes(3_000_000);
      const replies = await Promise.all(
        [large, ...["a", "b", "c"].map((each) => Buffer.from(each))].map((bytes) => dial(context, sandbox, { port: 19_901, bytes })),
      );
      claim.close();
      if (replies[0] === null) return noClient;
      sameBytes(replies[0] as Buffer, large, "the reply");
      assert.deepEqual(replies.slice(1).map(String), ["a", "b", "c"]);
      return undefined;
    },
  },
  {
    name: "serve: the latest caller has the port, and the previous one after it closes",
    async run(context) {
      const sandbox = await context.sandbox();
      const first = await claimPort(sandbox, 19_902, say("first"));
      if (first === null) return noNetwork;
      const second = await sandbox.serve(19_902, say("second"));
      const whoIsIt = async () => (await dial(context, sandbox, { port: 19_902, bytes: Buffer.from("?") }))?.toString();
      const whileBoth = await whoIsIt();
      if (whileBoth === undefined) return noClient;
      assert.equal(whileBoth, "second");
      second.close();
      assert.equal(await whoIsIt(), "first");
      first.close();
      return undefined;
    },
  },
  {
    name: "serve: after the server closes, clients get an answer that says so",
    async run(context) {
      const sandbox = await context.sandbox();
      const claim = await claimPort(sandbox, 19_903, say("served"));
      if (claim === null) return noNetwork;
      const served = await dial(context, sandbox, { port: 19_903, bytes: Buffer.from("?") });
      if (served === null) return noClient;
      assert.equal(served.toString(), "served");
      claim.close();
      const answer =
        (await dial(context, sandbox, { port: 19_903, bytes: Buffer.from("GET / HTTP/1.1\r\nhost: x\r\n\r\n") }))?.toString() ?? "";
      assert.match(answer, /^HTTP\/1\.1 503 .*\r\n\r\nno process on the host/is);
      assert.equal(Number(/content-length: (\d+)/i.exec(answer)?.[1]), answer.length - answer.indexOf("\r\n\r\n") - 4);
      return undefined;
    },
  },
  {
    name: "serve: a port that a program inside uses is a conflict",
    async run(context) {
      const sandbox = await context.sandbox();
      if ((await claimPort(sandbox, 19_904, say("x"))) === null) return noNetwork;
      const server = await start(sandbox, "serve");
      const port = await portOf(context, reader(context, server));
      if (port === null) return noClient;
      await rejectsWith(context, "conflict", "serving a program's port", () => sandbox.serve(port, say("x")));
      await server.kill();
      return undefined;
    },
  },
  {
    name: "serve: a number that is not a port is invalid",
    async run(context) {
      const sandbox = await context.sandbox();
      if ((await claimPort(sandbox, 19_904, say("x"))) === null) return noNetwork;
      for (const port of [0, -1, 65_536, 1.5, Number.NaN]) {
        await rejectsWith(context, "invalid", `serving ${port}`, () => sandbox.serve(port, say("x")));
      }
      return undefined;
    },
  },
  {
    name: "serve: a paused sandbox is served again after resume",
    needs: "pause",
    async run(context) {
      const sandbox = await context.create();
      await sandbox.serve(19_905, say("still here"));
      await sandbox.pause();
      await rejectsWith(context, "conflict", "serving a paused sandbox", () => sandbox.serve(19_906, say("x")));
      await sandbox.resume();
      const reply = await dial(context, sandbox, { port: 19_905, bytes: Buffer.from("?") });
      if (reply === null) return noClient;
      assert.equal(reply.toString(), "still here");
      return undefined;
    },
  },
];

/** Serves a port. Returns null if the sandbox shares the host's network because nothing isolates it. */
async function claimPort(
  sandbox: OwnedSandbox,
  port: number,
  onConnection: (connection: InboundConnection) => void,
): Promise<{ close(): void } | null> {
  try {
    return await sandbox.serve(port, onConnection);
  } catch (error) {
    if (error instanceof CaissonError && error.code === "unsupported" && sandbox.info.runtime === "host") return null;
    throw error;
  }
}

async function portOf(context: ConformanceContext, output: ReturnType<typeof reader>): Promise<number | null> {
  const first = await within(context, "the server's port", output.next());
  return first === null ? null : Number(Buffer.from(first.data).toString().trim());
}

function echoAtTheEnd({ stream, destination }: InboundConnection): void {
  const parts: Buffer[] = [];
  stream.on("data", (part: Buffer) => parts.push(part));
  stream.on("end", () => stream.end(destination === null ? Buffer.concat(parts) : "an unrequested destination"));
}

/** Sends one reply after the client has finished sending. */
function say(words: string): (connection: InboundConnection) => void {
  return ({ stream }) => void text(stream).then(() => stream.end(words));
}
