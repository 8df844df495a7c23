import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { CaissonError } from "../../contract/error.ts";
import type { InboundConnection, OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { ConformanceContext, ConformanceTest, Skipped } from "./context.ts";
import { dial, noClient } from "./dial.ts";
import { patternBytes, reader, rejectsWith, sameBytes, start, within } from "./expectations.ts";

const noNetwork: Skipped = { skipped: "its sandboxes have no network of their own" };

/** Ports inside that the host serves. */
export const serveTests: ConformanceTest[] = [
  {
    name: "serve: connections from inside carry bytes both ways, with half-close",
    async run(context) {
      const sandbox = await context.sandbox();
      const claim = await claimed(sandbox, 19_901, echoAtTheEnd);
      if (claim === null) return noNetwork;
      const large = patternBytes(3_000_000);
      const replies = await Promise.all(
        [large, ...["a", "b", "c"].map((each) => Buffer.from(each))].map((bytes) => dial(context, sandbox, { port: 19_901, bytes })),
      );
      claim.close();
      if (replies[0] === null) return noClient;
      sameBytes(replies[0] as Buffer, large, "what came back");
      assert.deepEqual(replies.slice(1).map(String), ["a", "b", "c"]);
      return undefined;
    },
  },
  {
    name: "serve: whoever asked last has the port, and the one before when it leaves",
    async run(context) {
      const sandbox = await context.sandbox();
      const first = await claimed(sandbox, 19_902, say("first"));
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
    name: "serve: while nobody serves a port that was served, whoever connects is told so",
    async run(context) {
      const sandbox = await context.sandbox();
      const claim = await claimed(sandbox, 19_903, say("served"));
      if (claim === null) return noNetwork;
      const served = await dial(context, sandbox, { port: 19_903, bytes: Buffer.from("?") });
      if (served === null) return noClient;
      assert.equal(served.toString(), "served");
      claim.close();
      const told =
        (await dial(context, sandbox, { port: 19_903, bytes: Buffer.from("GET / HTTP/1.1\r\nhost: x\r\n\r\n") }))?.toString() ?? "";
      assert.match(told, /^HTTP\/1\.1 503 .*\r\n\r\nno process on the host/is);
      assert.equal(Number(/content-length: (\d+)/i.exec(told)?.[1]), told.length - told.indexOf("\r\n\r\n") - 4);
      return undefined;
    },
  },
  {
    name: "serve: a port that a program inside has is a conflict",
    async run(context) {
      const sandbox = await context.sandbox();
      if ((await claimed(sandbox, 19_904, say("x"))) === null) return noNetwork;
      const server = await start(sandbox, "serve");
      const port = await portOf(context, reader(context, server));
      if (port === null) return noClient;
      await rejectsWith(context, "conflict", "serving a program's port", () => sandbox.serve(port, say("x")));
      await server.kill();
      return undefined;
    },
  },
  {
    name: "serve: a number that is none is invalid",
    async run(context) {
      const sandbox = await context.sandbox();
      if ((await claimed(sandbox, 19_904, say("x"))) === null) return noNetwork;
      for (const port of [0, -1, 65_536, 1.5, Number.NaN]) {
        await rejectsWith(context, "invalid", `serving ${port}`, () => sandbox.serve(port, say("x")));
      }
      return undefined;
    },
  },
  {
    name: "serve: what serves a sandbox that is paused serves it when it goes on",
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

/** Null where the sandbox shares the network of a machine that nothing is isolated from. */
async function claimed(
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
  stream.on("end", () => stream.end(destination === null ? Buffer.concat(parts) : "a destination nobody asked for"));
}

/** Says one thing when it was spoken to. */
function say(words: string): (connection: InboundConnection) => void {
  return ({ stream }) => void text(stream).then(() => stream.end(words));
}
