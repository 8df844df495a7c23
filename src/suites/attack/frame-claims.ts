import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { ignore } from "../../lib/failures.ts";
import { connectGuest, type GuestConnection } from "../../sandbox/guest/connection.ts";
import { encodeFields, shapes } from "../../sandbox/guest/fields.ts";
import { createFrameParser, encodeFrame, FRAME_HEADER_BYTES, frameCode } from "../../sandbox/guest/frame.ts";
import type { AttackContext } from "./attack-context.ts";
import { type Claim, defineClaim, type NotTried, notTriedAsDeclared } from "./claim.ts";
import { pings } from "./isolation-claims.ts";

const MIB = 1024 * 1024;
const MUTATIONS = 1_000_000;
/** Only catches hangs: on a busy machine, the time until detection means nothing. */
const CLOSED_MS_MAX = 20_000;

const welcome = () =>
  encodeFields("WELCOME", 0, shapes.WELCOME, { version: 1, guestVersion: "evil", bootId: Buffer.alloc(16), uid: 1000, gid: 1000 });

/** Builds a header with any values, legal or not. */
function header(length: number, type: number, stream: number, flags = 0): Buffer {
  const bytes = Buffer.alloc(FRAME_HEADER_BYTES);
  bytes.writeUInt32LE(length >>> 0, 0);
  bytes[4] = type;
  bytes[5] = flags;
  bytes.writeUInt32LE(stream, 8);
  return bytes;
}

const startedFrame = () => encodeFields("STARTED", 1, shapes.STARTED, { ref: "evil", pid: 7 });
const endedFrame = () => encodeFields("ENDED", 1, shapes.ENDED, { kind: 1, exitCode: 0, stdoutBytes: 0, stderrBytes: 0 });
const output = () => {
  const raw = Buffer.alloc(10);
  raw[0] = 1;
  raw[9] = 65;
  return encodeFrame("OUTPUT", 1, raw);
};

/** A hostile guest's answers to the first request. Each must end the connection with `protocol`. */
const hostileLengths: Record<string, Buffer> = {
  "a length of 0xFFFFFFFF": header(0xffffffff, frameCode.OK, 1),
  "a length of 0x80000000": header(0x80000000, frameCode.OUTPUT, 1),
  "a length just over the maximum": header(262_145, frameCode.OUTPUT, 1),
  "a length of zero where fields are required": header(0, frameCode.STARTED, 1),
};
const hostileFrames: Record<string, Buffer> = {
  "an unknown type": header(0, 0x7f, 1),
  "a type only the host may send": header(0, frameCode.SPAWN, 1),
  "flags that are not zero": header(0, frameCode.OK, 1, 3),
  "a reply to an id that was never used": encodeFrame("OK", 4_711),
  "two ends": Buffer.concat([startedFrame(), endedFrame(), endedFrame()]),
  "output after the end": Buffer.concat([startedFrame(), endedFrame(), output()]),
  "output before the start": output(),
  "output at an offset that was never reached": Buffer.concat([startedFrame(), outputAt(1_000_000)]),
  "a connection to an unserved port": acceptedFrame(),
  "a datagram that nothing requested": encodeFrame("DATAGRAM", 1, Buffer.alloc(8)),
  "bytes on a stream that it never opened": encodeFrame("DATA", 2, Buffer.alloc(8)),
  "a field that exceeds its payload": Buffer.concat([header(5, frameCode.STARTED, 1), Buffer.from([1, 0xff, 0xff, 0xff, 0x7f])]),
};

function acceptedFrame(): Buffer {
  return encodeFields("ACCEPTED", 2, shapes.ACCEPTED, { port: 80 });
}

function outputAt(offset: number): Buffer {
  const raw = Buffer.alloc(10);
  raw[0] = 1;
  raw.writeBigUInt64LE(BigInt(offset), 1);
  return encodeFrame("OUTPUT", 1, raw);
}

interface HostileSeen {
  /** How the connection ended, by trick. */
  answers: Record<string, string>;
  grownBytes: number;
  /** Whether a real sandbox that was open at the same time still answers. */
  others: boolean;
}

/**
 * Attacks on the host's side of the socket by a compromised guest. The same code serves every runtime that has a guest.
 */
export const frameClaims: Claim[] = [
  hostileClaim("H10", "A frame of absurd length ends its connection and takes no memory", hostileLengths),
  hostileClaim("H12", "Nonsensical frames end their own connection and no other", hostileFrames),
  defineClaim<{ frames: number; foreign: string[]; heldBytesMax: number }>({
    id: "H13",
    title: "A million mutated frames never break the reader",
    group: "host trust",
    tried: `Fed the host's frame reader ${MUTATIONS.toLocaleString("en")} frames with random byte changes, split at random places.`,
    async observe(context) {
      if (!hasGuest(context)) return noGuest();
      return mutateFrames();
    },
    judge: ({ frames, foreign, heldBytesMax }) => [
      ...foreign.map((each) => `threw ${each}`),
      ...(frames >= MUTATIONS ? [] : [`only ${frames} frames were tried`]),
      ...(heldBytesMax <= MIB ? [] : [`held ${heldBytesMax} bytes of incomplete frames`]),
    ],
    describe: ({ frames, heldBytesMax }) => `${frames} frames; at most ${heldBytesMax} bytes held; only protocol errors thrown`,
  }),
];

function hostileClaim(id: string, title: string, tricks: Record<string, Buffer>): Claim {
  return defineClaim<HostileSeen>({
    id,
    title,
    group: "host trust",
    tried: `Connected to a guest that answers with ${Object.keys(tricks).join(", ")}.`,
    async observe(context) {
      if (!hasGuest(context)) return noGuest();
      const sandbox = await context.sandbox();
      const before = process.memoryUsage().rss;
      const answers: Record<string, string> = {};
      for (const [what, bytes] of Object.entries(tricks)) answers[what] = await endOfConnection(bytes);
      const grownBytes = process.memoryUsage().rss - before;
      const others = await pings(context, sandbox);
      return { answers, grownBytes, others };
    },
    judge: ({ answers, grownBytes, others }) => [
      ...Object.entries(answers)
        .filter(([, code]) => code !== "protocol")
        .map(([what, code]) => `${what}: ${code}`),
      ...(grownBytes < 64 * MIB ? [] : [`memory grew by ${grownBytes} bytes`]),
      ...(others ? [] : ["another sandbox's connection was affected"]),
    ],
    describe: ({ answers }) => `${Object.keys(answers).length} tricks, each connection ended with a protocol error`,
  });
}

function hasGuest(context: AttackContext): boolean {
  return context.runtime.name !== "fake";
}
function noGuest(): NotTried {
  return notTriedAsDeclared("the runtime has no guest");
}

/**
 * Greets like a guest, waits for the first request, answers with the bytes, and returns how the host ended the
 * connection.
 */
async function endOfConnection(answer: Buffer): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "caisson-test-"));
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    let greeted = false;
    socket.on("data", () => {
      socket.write(greeted ? answer : welcome());
      greeted = true;
    });
  });
  const socketPath = join(folder, "guest.sock");
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  let connection: GuestConnection | null = null;
  try {
    connection = await connectGuest({ socketPath, timeoutMs: CLOSED_MS_MAX });
    const request = connection.spawn({ ref: "evil", argv: ["true"] });
    void ignore(
      request.then((process) => process.discardOutput()),
      "the attack only checks how the connection ends",
    );
    const closed = await Promise.race([connection.closed, new Promise<"stayed open">((r) => setTimeout(r, CLOSED_MS_MAX, "stayed open"))]);
    return closed instanceof CaissonError ? closed.code : closed === null ? "closed without a reason" : closed;
  } finally {
    connection?.close();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
    await rm(folder, { recursive: true, force: true });
  }
}

/** Deterministic, to reproduce failures. */
async function mutateFrames() {
  let state = 0x9e3779b9;
  const random = (below: number) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
  const samples = [
    welcome(),
    startedFrame(),
    endedFrame(),
    output(),
    encodeFrame("OK", 1),
    encodeFrame("PONG", 3, Buffer.alloc(64)),
    encodeFrame("DATA", 5, Buffer.alloc(200)),
    acceptedFrame(),
    encodeFrame("DATAGRAM", 7, Buffer.alloc(40)),
  ];
  const foreign = new Set<string>();
  let heldBytesMax = 0;
  let frames = 0;
  while (frames < MUTATIONS) {
    const parser = createFrameParser({ receiver: "host", onFrame: () => undefined });
    try {
      for (let i = 0; i < 50; i += 1) {
        frames += 1;
        const frame = Buffer.from(samples[random(samples.length)] as Buffer);
        if (random(4) === 0) frame[random(frame.length)] = random(256);
        const cut = random(frame.length);
        parser.push(frame.subarray(0, cut));
        heldBytesMax = Math.max(heldBytesMax, parser.heldBytes);
        parser.push(frame.subarray(cut));
      }
    } catch (error) {
      if (!(error instanceof CaissonError) || error.code !== "protocol") foreign.add(String(error));
    }
    if (frames % 50_000 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  return { frames, foreign: [...foreign], heldBytesMax };
}
