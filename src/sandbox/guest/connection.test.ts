import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  refOf,
  type ScriptedGuest,
  type ScriptedPeer,
  scriptedWelcome,
  startScriptedGuest,
  useScriptedGuest,
} from "../../../test/support/scripted-guest.ts";
import { connectGuest, type GuestConnection } from "./connection.ts";
import { answers, entries, shapes } from "./fields.ts";
import { encodeFrame } from "./frame.ts";

let guest: ScriptedGuest;
let connection: GuestConnection;
let peer: ScriptedPeer;
useScriptedGuest((each) => {
  ({ guest, connection, peer } = each);
});

const u64 = (value: bigint) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
};
const field = (tag: number, bytes: Uint8Array) => {
  const head = Buffer.alloc(5);
  head[0] = tag;
  head.writeUInt32LE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
};
/** A complete ENDED, so the lie that follows it is the only reason to reject it. */
const wholeEnd = Buffer.concat([field(1, u64(1n)), field(4, u64(0n)), field(5, u64(0n))]);
const output = (descriptor: number, offset: bigint, data: Uint8Array) => Buffer.concat([Buffer.from([descriptor]), u64(offset), data]);

/** Starts a process and returns its stream, on which only STARTED was sent. */
async function spawnStream(): Promise<number> {
  const spawning = connection.spawn({ ref: "r", argv: ["x"], stdin: true });
  const frame = await peer.next("SPAWN");
  peer.started(frame.stream, refOf(frame));
  await spawning;
  return frame.stream;
}

describe("a guest that breaks the protocol", () => {
  const lies: Record<string, (stream: number) => void> = {
    "a length of 0xFFFFFFFF": () => peer.socket.write(Buffer.from("ffffffff0600000001000000", "hex")),
    "a length one past the maximum": () => peer.socket.write(Buffer.from("010004000600000001000000", "hex")),
    "an unknown type": () => peer.socket.write(Buffer.from("00000000ee00000000000000", "hex")),
    "a type that only the host may send": (stream) => peer.send("SPAWN", stream),
    "flags that are not zero": () => peer.socket.write(Buffer.from("000000000601000001000000", "hex")),
    "reserved bytes that are not zero": () => peer.socket.write(Buffer.from("000000000600010001000000", "hex")),
    "a reply for an id that was never used": () => peer.send("OK", 4_001),
    "a frame on an even stream": () => peer.send("OK", 2),
    "an answer on stream 0": () => peer.send("OK", 0),
    "a heartbeat without its fields": () => peer.send("HEARTBEAT", 0),
    "a second welcome": () => peer.sendFields("WELCOME", 0, shapes.WELCOME, scriptedWelcome),
    "two STARTED": (stream) => peer.started(stream, "r"),
    "two ENDED": (stream) => {
      peer.ended(stream);
      peer.ended(stream);
    },
    "output after ENDED": (stream) => {
      peer.ended(stream);
      peer.output(stream, 1, 0, Buffer.from("x"));
    },
    "an offset that jumps": (stream) => {
      peer.output(stream, 1, 0, Buffer.from("x"));
      peer.output(stream, 1, 5, Buffer.from("x"));
    },
    "an offset that goes back": (stream) => {
      peer.output(stream, 1, 0, Buffer.from("xyz"));
      peer.output(stream, 1, 1, Buffer.from("x"));
    },
    "output that does not begin at 0": (stream) => peer.output(stream, 2, 7, Buffer.from("x")),
    "an offset past 2^53": (stream) => peer.send("OUTPUT", stream, output(1, 2n ** 60n, Buffer.from("x"))),
    "an offset of -1": (stream) => peer.send("OUTPUT", stream, output(1, 2n ** 64n - 1n, Buffer.from("x"))),
    "output of descriptor 3": (stream) => peer.send("OUTPUT", stream, output(3, 0n, Buffer.from("x"))),
    "output without bytes": (stream) => peer.send("OUTPUT", stream, output(1, 0n, Buffer.alloc(0))),
    "an empty OUTPUT": (stream) => peer.send("OUTPUT", stream),
    "more output than the window": (stream) => {
      for (let at = 0; at <= 1_048_576; at += 131_072) peer.output(stream, 1, at, Buffer.alloc(131_072));
    },
    "totals that were not sent": (stream) => peer.ended(stream, { stdoutBytes: 5 }),
    "an exit code of 256": (stream) => peer.ended(stream, { exitCode: 256 }),
    "an end of no kind": (stream) => peer.ended(stream, { kind: 9 }),
    "signal 0": (stream) => peer.ended(stream, { kind: 2, signal: 0 }),
    "an ENDED without its kind": (stream) => peer.send("ENDED", stream, field(4, u64(0n))),
    "a field that runs past the frame": (stream) => peer.send("ENDED", stream, Buffer.from([1, 255, 255, 255, 255, 0])),
    "a field cut short": (stream) => peer.send("ENDED", stream, Buffer.from([1, 8, 0])),
    "a number of 4 bytes": (stream) => peer.send("ENDED", stream, field(1, Buffer.alloc(4))),
    "a field twice": (stream) => peer.send("ENDED", stream, Buffer.concat([wholeEnd, field(1, u64(1n))])),
    "a duration past 2^53": (stream) => peer.send("ENDED", stream, Buffer.concat([wholeEnd, field(6, u64(2n ** 60n))])),
    "stdin acknowledged that was not sent": (stream) => peer.send("STDIN_ACK", stream, u64(1n)),
    "an acknowledgement of 3 bytes": (stream) => peer.send("STDIN_ACK", stream, Buffer.alloc(3)),
    "file data on a process": (stream) => peer.send("DATA", stream, Buffer.from("x")),
    "an error of an unknown code": (stream) => peer.sendFields("ERROR", stream, shapes.ERROR, { code: 99 }),
    "an error with NUL in its text": (stream) => peer.sendFields("ERROR", stream, shapes.ERROR, { code: 9, message: "a\0b" }),
  };

  test.each(Object.entries(lies))("%s ends the connection with a protocol error, which waiters receive", async (_name, lie) => {
    const stream = await spawnStream();
    const waiting = connection.files.stat("/x", { follow: true });
    const caught = waiting.catch((error: unknown) => error);
    await peer.next("STAT");
    lie(stream);
    expect(await connection.closed).toMatchObject({ code: "protocol" });
    expect(await caught).toMatchObject({ code: "protocol" });
    await expect(connection.ping({ timeoutMs: 60_000 })).rejects.toMatchObject({ code: "lost" });
  });

  const answersTo: Record<
    string,
    {
      ask: () => Promise<unknown>;
      type: "STAT" | "LISTDIR" | "WRITE" | "READ" | "LIST" | "CONNECT" | "WATCH";
      lie: (stream: number) => void;
    }
  > = {
    "a file of no kind": {
      ask: () => connection.files.stat("/x", { follow: true }),
      type: "STAT",
      lie: (stream) => peer.sendFields("OK", stream, answers.file, { name: "x", kind: 77 }),
    },
    "more entries than asked for": {
      ask: () => connection.files.list("/x", { depth: 1, entriesMax: 2 }),
      type: "LISTDIR",
      lie: (stream) => {
        for (const name of ["a", "b", "c"]) peer.sendFields("ENTRY", stream, entries.file, { name, kind: 1 });
      },
    },
    "an entry of 20,000 bytes": {
      ask: () => connection.files.list("/x", { depth: 1, entriesMax: 2 }),
      type: "LISTDIR",
      lie: (stream) => peer.sendFields("ENTRY", stream, entries.file, { name: "n".repeat(20_000), kind: 1 }),
    },
    "success before the bytes were sent": {
      ask: () => connection.files.writeFile("/x", neverEnding(), { how: "replace", parents: false }),
      type: "WRITE",
      lie: (stream) => peer.sendFields("OK", stream, answers.written, { bytes: 0 }),
    },
    "data before OK": {
      ask: () => connection.files.readFile("/x", {}),
      type: "READ",
      lie: (stream) => peer.send("DATA", stream, Buffer.from("x")),
    },
    "a process in no state": {
      ask: () => connection.processes(),
      type: "LIST",
      lie: (stream) => peer.sendFields("ENTRY", stream, entries.process, { pid: 1, state: 3 }),
    },
    "STARTED as an answer to CONNECT": { ask: () => connection.connect(80), type: "CONNECT", lie: (stream) => peer.started(stream, "r") },
    "a watch event before OK": {
      ask: () => connection.files.watch("/x", { recursive: false }),
      type: "WATCH",
      lie: (stream) => peer.sendFields("WATCH_EVENT", stream, shapes.WATCH_EVENT, { kind: 1, path: "/x" }),
    },
  };
  test.each(Object.entries(answersTo))("rejects %s as an answer", async (_name, { ask, type, lie }) => {
    const caught = ask().catch((error: unknown) => error);
    lie((await peer.next(type)).stream);
    expect(await caught).toMatchObject({ code: "protocol" });
    expect(await connection.closed).toMatchObject({ code: "protocol" });
  });

  test("ends the connection if DATA exceeds the window", async () => {
    const reading = connection.files.readFile("/x", {});
    const { stream } = await peer.next("READ");
    peer.sendFields("OK", stream, answers.file, { name: "/x", kind: 1 });
    await reading;
    for (let sent = 0; sent <= 1_048_576; sent += 262_144) peer.send("DATA", stream, Buffer.alloc(262_144));
    expect(await connection.closed).toMatchObject({ code: "protocol" });
  });

  test("does not affect another connection to the same guest", async () => {
    const other = await guest.connect();
    peer.send("OK", 77);
    await connection.closed;
    const pong = other.connection.ping({ timeoutMs: 60_000 });
    const ping = await other.peer.next("PING");
    other.peer.send("PONG", ping.stream, ping.payload);
    expect((await pong).roundTripMs).toBeGreaterThan(0);
    other.connection.close();
  });

  test("cannot exhaust memory by flooding unrequested frames", async () => {
    const before = process.memoryUsage().arrayBuffers;
    const flood = Buffer.concat(Array.from({ length: 1_000 }, () => encodeFrame("DATA", 999, Buffer.alloc(1_000))));
    // The same bytes each time, so memory grows only if the connection keeps copies of them.
    for (let sent = 0; sent < 64; sent++) peer.socket.write(flood);
    expect(await connection.closed).toMatchObject({ code: "protocol" });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 1024 * 1024);
  });
});

test("replaces invalid UTF-8 in names with replacement characters", async () => {
  const stat = connection.files.stat("/x", { follow: true });
  const { stream } = await peer.next("STAT");
  peer.send("OK", stream, Buffer.concat([field(1, Buffer.from([0x61, 0xff, 0x62])), field(2, u64(1n))]));
  expect(await stat).toMatchObject({ name: "a\ufffdb", kind: "file" });
});

test("ignores unknown fields", async () => {
  const stat = connection.files.stat("/x", { follow: true });
  const { stream } = await peer.next("STAT");
  peer.send("OK", stream, Buffer.concat([field(200, Buffer.from("future")), field(1, Buffer.from("x")), field(2, u64(2n))]));
  expect(await stat).toMatchObject({ kind: "directory" });
});

test("a heartbeat updates lastHeardMs", async () => {
  const before = connection.lastHeardMs();
  await until(() => Date.now() > before);
  peer.sendFields("HEARTBEAT", 0, shapes.HEARTBEAT, { uptimeMs: 5_000 });
  await expect.poll(() => connection.lastHeardMs()).toBeGreaterThan(before);
});

test("an unanswered ping times out, and its late answer is ignored", async () => {
  await expect(connection.ping({ timeoutMs: 20 })).rejects.toMatchObject({ code: "timeout" });
  peer.send("PONG", (await peer.next("PING")).stream);
  const again = connection.ping({ timeoutMs: 60_000 });
  peer.send("PONG", (await peer.next("PING")).stream);
  await again;
});

describe("connectGuest", () => {
  const greetings: Record<string, { onHello: (peer: ScriptedPeer) => void; code: string }> = {
    "a wrong token": { onHello: (p) => p.sendFields("ERROR", 0, shapes.ERROR, { code: 4, message: "wrong token" }), code: "denied" },
    "another version": {
      onHello: (p) => p.sendFields("WELCOME", 0, shapes.WELCOME, { ...scriptedWelcome, version: 2 }),
      code: "unsupported",
    },
    "a boot id of 3 bytes": {
      onHello: (p) => p.sendFields("WELCOME", 0, shapes.WELCOME, { ...scriptedWelcome, bootId: Buffer.alloc(3) }),
      code: "protocol",
    },
    "something else first": { onHello: (p) => p.sendFields("HEARTBEAT", 0, shapes.HEARTBEAT, { uptimeMs: 1 }), code: "protocol" },
    "a closed door": { onHello: (p) => p.socket.destroy(), code: "lost" },
    silence: { onHello: () => {}, code: "timeout" },
  };
  test.each(Object.entries(greetings))("rejects %s", async (_name, { onHello, code }) => {
    await using rude = await startScriptedGuest({ onHello });
    await expect(connectGuest({ socketPath: rude.socketPath, timeoutMs: 100 })).rejects.toMatchObject({ code });
  });

  test("fails immediately if there is no socket, unless it should wait for one", async () => {
    const socketPath = join(tmpdir(), "caisson-test-nobody.sock");
    await expect(connectGuest({ socketPath, timeoutMs: 60_000 })).rejects.toMatchObject({ code: "lost" });
    await expect(connectGuest({ socketPath, timeoutMs: 30, waitForSocket: true })).rejects.toMatchObject({ code: "timeout" });
  });

  test("finds a socket that appears later, at a path of any length", async () => {
    const folder = await mkdtemp(join(tmpdir(), "caisson-test-long-"));
    const deep = join(folder, "d".repeat(120), "e".repeat(120));
    await mkdir(deep, { recursive: true });
    const connecting = connectGuest({ socketPath: join(deep, "guest.sock"), timeoutMs: 60_000, waitForSocket: true });
    const server: Server = createServer((socket) => socket.once("data", () => socket.write(welcomeFrame())));
    await new Promise<void>((resolve) => server.listen(join(folder, "s"), resolve));
    await rename(join(folder, "s"), join(deep, "guest.sock"));
    const connected = await connecting;
    expect(connected.welcome.guestVersion).toBe("scripted");
    connected.close();
    await new Promise((resolve) => server.close(resolve));
    await rm(folder, { recursive: true });
  });
});

function welcomeFrame(): Buffer {
  const fields = [field(1, u64(1n)), field(2, Buffer.from("scripted")), field(3, Buffer.alloc(16)), field(4, u64(0n)), field(5, u64(0n))];
  return encodeFrame("WELCOME", 0, Buffer.concat(fields));
}

async function* neverEnding(): AsyncGenerator<Uint8Array> {
  yield Buffer.from("x");
  await new Promise(() => {});
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}
