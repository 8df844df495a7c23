import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import type { InboundConnection, OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { ConformanceContext, ConformanceTest, Skipped } from "./context.ts";
import { dial, noClient } from "./dial.ts";
import { describeEnd, reader, rejectsWith, run, runOk, start } from "./expectations.ts";

const noMeans: Skipped = { skipped: "no program inside can look up a name: neither python3 nor getent" };
const network = { mode: "allow", transparent: true } as const;

/** Programs that do not know about proxies: the host answers, whatever address they connect to. */
export const transparentTests: ConformanceTest[] = [
  {
    name: "transparent: a connection to any address arrives with its destination",
    needs: "transparentNetwork",
    async run(context) {
      const sandbox = await context.create({ network });
      await sandbox.serveTransparent({ ports: [80, 443, 8443], onConnection: sayWhere, onDatagram: () => null });
      const targets = [
        ["93.184.216.34", 80],
        ["10.1.2.3", 443],
        ["169.254.169.254", 80],
        ["192.0.2.1", 8443],
      ] as const;
      for (const [address, port] of targets) {
        const reply = await dial(context, sandbox, { port, address, bytes: Buffer.from("hello") });
        if (reply === null) return noClient;
        assert.equal(reply.toString(), `hello to ${address} ${port}`);
      }
      // Everything stays inside: there is no interface through which it could leave.
      const interfaces = (await runOk(context, sandbox, "show", "/proc/net/dev")).match(/^ *[^\s:|]+(?=:)/gm)?.map((name) => name.trim());
      assert.deepEqual(interfaces, ["lo"]);
      return undefined;
    },
  },
  {
    name: "transparent: the host answers name lookups from the queried address",
    needs: "transparentNetwork",
    async run(context) {
      const sandbox = await context.create({ network });
      const names: string[] = [];
      await sandbox.serveTransparent({
        ports: [80],
        onConnection: sayWhere,
        onDatagram: async (question) => {
          const [name, answer] = answerTo(question);
          names.push(name);
          return answer;
        },
      });
      const resolved = await run(context, sandbox, "resolve", { args: ["some.example"] });
      if (describeEnd(resolved.ended) === "exited 3") return noMeans;
      assert.match(resolved.stdout.toString(), /\b192\.0\.2\.7\b/, resolved.stderr.toString());
      assert.ok(names.includes("some.example"), `asked for ${names}`);
      const direct = await run(context, sandbox, "ask-datagram", { args: ["9.9.9.9"] });
      if (describeEnd(direct.ended) !== "exited 3") assert.equal(direct.stdout.toString().trim(), "answered by 9.9.9.9");
      return undefined;
    },
  },
  {
    name: "transparent: unserved ports refuse, and a program's own port stays reachable",
    needs: "transparentNetwork",
    async run(context) {
      const sandbox = await context.create({ network });
      await sandbox.serveTransparent({ ports: [80], onConnection: sayWhere, onDatagram: () => null });
      if ((await dial(context, sandbox, { port: 80, address: "192.0.2.1", bytes: Buffer.from("x") })) === null) return noClient;
      await assert.rejects(dial(context, sandbox, { port: 81, address: "192.0.2.1", bytes: Buffer.from("x") }), /refused|exited 4/i);
      const server = await start(sandbox, "serve");
      const first = await reader(context, server).next();
      if (first === null) return noClient;
      const connection = await sandbox.connect(Number(Buffer.from(first.data).toString().trim()));
      connection.end("own");
      assert.equal(await text(connection), "own");
      await server.kill();
      return undefined;
    },
  },
  {
    name: "transparent: an ordinary sandbox has no such network",
    needs: "transparentNetwork",
    async run(context) {
      const sandbox = await context.create({ network: { mode: "allow" } });
      const service = { ports: [80], onConnection: sayWhere, onDatagram: () => null };
      await rejectsWith(context, "unsupported", "serving every address", () => sandbox.serveTransparent(service));
      await sandbox.serve(19_907, sayWhere);
      if ((await dialOrdinary(context, sandbox, 19_907)) === null) return noClient;
      await assert.rejects(dial(context, sandbox, { port: 80, address: "192.0.2.1", bytes: Buffer.from("x") }), /unreachable|exited 4/i);
      return undefined;
    },
  },
];

function dialOrdinary(context: ConformanceContext, sandbox: OwnedSandbox, port: number): Promise<Buffer | null> {
  return dial(context, sandbox, { port, bytes: Buffer.from("x") });
}

/** Echoes the received bytes and their destination. */
function sayWhere({ stream, destination }: InboundConnection): void {
  void text(stream).then((message) => stream.end(`${message} to ${destination?.address} ${destination?.port}`));
}

const TYPE_ADDRESS = 1;

/** Returns the name in a DNS query, and an answer: 192.0.2.7 for its IPv4 address, nothing for other types. */
function answerTo(question: Buffer): [name: string, answer: Buffer] {
  const labels: string[] = [];
  let at = 12;
  for (let length = question[at] ?? 0; length > 0; length = question[at] ?? 0) {
    labels.push(question.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  const isAddress = question.readUInt16BE(at + 1) === TYPE_ADDRESS;
  const head = Buffer.from(question.subarray(0, at + 5));
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(isAddress ? 1 : 0, 6);
  head.writeUInt32BE(0, 8);
  const record = Buffer.from([0xc0, 12, 0, TYPE_ADDRESS, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 7]);
  return [labels.join("."), isAddress ? Buffer.concat([head, record]) : head];
}
