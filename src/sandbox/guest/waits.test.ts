import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { refOf, type ScriptedPeer, type SeenFrame, startScriptedGuest } from "../../../test/support/scripted-guest.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { GuestConnection } from "./connection.ts";
import { answers, shapes } from "./fields.ts";
import type { GuestCondition } from "./waits.ts";

/**
 * A guest that is stopped, trickles or lies: every wait for it ends, and its error says why. The test controls the
 * clock; the sockets are real.
 */

type Answering = (peer: ScriptedPeer, frame: SeenFrame) => void;
const silent: Answering = () => {};
const pongs: Answering = (peer, { type, stream }) => {
  if (type === "PING") peer.send("PONG", stream);
};
const file = { name: "f", kind: 1, sizeBytes: 1_000_000, mode: 0o644, uid: 0, gid: 0, modifiedMs: 0, linkTarget: "" };

let cleanUp: (() => Promise<void>)[] = [];
beforeEach(() => {
  cleanUp = [];
});
afterEach(async () => {
  vi.useRealTimers();
  for (const each of cleanUp) await each();
});

async function connect(
  onFrame: Answering,
  condition: GuestCondition = "running",
): Promise<{ connection: GuestConnection; peer: ScriptedPeer }> {
  const guest = await startScriptedGuest({ onFrame });
  cleanUp.push(async () => guest[Symbol.asyncDispose]());
  const connected = await guest.connect();
  cleanUp.unshift(async () => connected.connection.close());
  connected.connection.onSilence(async () => condition);
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "setTimeout", "clearTimeout"] });
  return connected;
}

/** Advances the client's clock and lets the sockets do their work. */
async function pass(seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve));
    await vi.advanceTimersByTimeAsync(1_000);
  }
  for (let turn = 0; turn < 8; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Reports how a call ended, or `waits`. */
function fateOf(call: Promise<unknown>): { now: () => string } {
  let fate = "waits";
  call.then(
    () => {
      fate = "resolved";
    },
    (error: unknown) => {
      fate = error instanceof CaissonError ? [error.code, error.details?.guest].filter(Boolean).join(" ") : String(error);
    },
  );
  return { now: () => fate };
}

async function* never(): AsyncGenerator<Uint8Array> {
  await new Promise(() => {});
  yield Buffer.alloc(0);
}

const requests: Record<string, (connection: GuestConnection) => Promise<unknown>> = {
  stat: ({ files }) => files.stat("/f", { follow: true }),
  list: ({ files }) => files.list("/", { depth: 1, entriesMax: 10 }),
  mkdir: ({ files }) => files.mkdir("/d", { parents: true }),
  move: ({ files }) => files.move("/a", "/b", { replace: false }),
  remove: ({ files }) => files.remove("/a", { recursive: true }),
  "read a file": ({ files }) => files.readFile("/f", {}),
  "write a file": ({ files }) => files.writeFile("/f", Buffer.alloc(10), { how: "replace", parents: false }),
  "write a file larger than the window": ({ files }) => files.writeFile("/f", Buffer.alloc(3_000_000), { how: "replace", parents: false }),
  watch: ({ files }) => files.watch("/", { recursive: true }),
  "unpack an archive": ({ files }) => files.tarIn("/", Buffer.alloc(1_024), {}),
  "pack an archive": ({ files }) => files.tarOut("/", { exclude: [] }),
  "list processes": (connection) => connection.processes(),
  forget: (connection) => connection.forget("r"),
  spawn: (connection) => connection.spawn({ ref: "r", argv: ["true"], cwd: "/" }),
  attach: (connection) => connection.attach({ ref: "r" }),
  "connect to a port": (connection) => connection.connect(80),
  "list ports": (connection) => connection.listeners(),
  "serve a port": (connection) => connection.serve(80, () => {}),
};

describe.each(Object.entries(requests))("%s", (_name, request) => {
  test("times out if the guest does not answer", async () => {
    const { connection } = await connect(silent, "stopped");
    const fate = fateOf(request(connection));
    await pass(9);
    expect(fate.now()).toBe("waits");
    await pass(8);
    expect(fate.now()).toBe("timeout stopped");
  });

  test("times out much later if the guest is alive but makes no progress", async () => {
    const { connection, peer } = await connect(pongs);
    const fate = fateOf(request(connection));
    await pass(50);
    expect(fate.now()).toBe("waits");
    await pass(251);
    expect(fate.now()).toBe("timeout slow");
    expect(peer.seen.map(({ type }) => type)).toContain("CANCEL");
  });
});

test.each<[GuestCondition, string]>([
  ["stopped", "timeout stopped"],
  ["frozen", "timeout frozen"],
  ["running", "timeout silent"],
  ["unknown", "timeout silent"],
  ["dead", "lost"],
])("a silent guest that the host sees as %s is reported as %s", async (condition, outcome) => {
  const { connection } = await connect(silent, condition);
  const fate = fateOf(connection.files.stat("/f", { follow: true }));
  await pass(17);
  expect(fate.now()).toBe(outcome);
  expect(connection.isClosed).toBe(condition === "dead");
});

test("a frozen sandbox whose guest answers is reported without the long wait", async () => {
  const { connection } = await connect(pongs, "frozen");
  const fate = fateOf(connection.spawn({ ref: "r", argv: ["true"], cwd: "/" }));
  await pass(12);
  expect(fate.now()).toBe("timeout frozen");
});

describe("a transfer", () => {
  const accepting: Answering = (peer, frame) => {
    pongs(peer, frame);
    if (frame.type === "READ") peer.sendFields("OK", frame.stream, answers.file, file);
    if (frame.type === "TAR_OUT") peer.send("OK", frame.stream);
  };
  const readAll = async (bytes: AsyncIterable<Uint8Array>) => {
    for await (const _ of bytes);
  };

  test("times out if announced bytes never arrive", async () => {
    const { connection } = await connect(accepting);
    const fate = fateOf(connection.files.readFile("/f", {}).then(readAll));
    await pass(61);
    expect(fate.now()).toBe("timeout slow");
  });

  test("times out if the bytes trickle in", async () => {
    const { connection, peer } = await connect(accepting);
    const fate = fateOf(connection.files.tarOut("/", { exclude: [] }).then(readAll));
    const { stream } = await peer.next("TAR_OUT");
    for (let drop = 0; drop < 13 && fate.now() === "waits"; drop++) {
      await pass(5);
      peer.send("DATA", stream, Buffer.from("x"));
    }
    expect(fate.now()).toBe("timeout slow");
  });

  test("continues as long as it is steady", async () => {
    const { connection, peer } = await connect(accepting);
    const fate = fateOf(connection.files.tarOut("/", { exclude: [] }).then(readAll));
    const { stream } = await peer.next("TAR_OUT");
    for (let piece = 0; piece < 60; piece++) {
      await pass(5);
      peer.send("DATA", stream, Buffer.alloc(4_096));
    }
    expect(fate.now()).toBe("waits");
    peer.send("END", stream);
    await pass(1);
    expect(fate.now()).toBe("resolved");
  });

  test("does not blame the guest for a slow reader", async () => {
    const { connection, peer } = await connect(accepting);
    const bytes = await connection.files.readFile("/f", {});
    const { stream } = await peer.next("READ");
    peer.send("DATA", stream, Buffer.from("one"));
    const reader = bytes[Symbol.asyncIterator]();
    expect((await reader.next()).value).toEqual(Buffer.from("one"));
    await pass(600);
    peer.send("DATA", stream, Buffer.from("two"));
    expect((await reader.next()).value).toEqual(Buffer.from("two"));
  });

  test("blames the guest for accepting bytes in a trickle, not for a slow source", async () => {
    const { connection, peer } = await connect(pongs);
    const slow = fateOf(connection.files.tarIn("/", never(), {}));
    const dripped = fateOf(connection.files.writeFile("/f", Buffer.alloc(3_000_000), { how: "replace", parents: false }));
    const { stream } = await peer.next("WRITE");
    const credit = Buffer.alloc(4);
    credit.writeUInt32LE(1);
    for (let drop = 0; drop < 13 && dripped.now() === "waits"; drop++) {
      await pass(5);
      peer.send("CREDIT", stream, credit);
    }
    expect([slow.now(), dripped.now()]).toEqual(["waits", "timeout slow"]);
  });

  test("times out if entries trickle in", async () => {
    const { connection, peer } = await connect(pongs);
    const fate = fateOf(connection.files.list("/", { depth: 1, entriesMax: 10_000 }));
    const { stream } = await peer.next("LISTDIR");
    for (let entry = 0; entry < 13 && fate.now() === "waits"; entry++) {
      await pass(5);
      peer.sendFields("ENTRY", stream, answers.file, file);
    }
    expect(fate.now()).toBe("timeout slow");
  });
});

describe("an abort signal", () => {
  const calls: Record<string, (connection: GuestConnection, signal: AbortSignal) => Promise<unknown>> = {
    stat: ({ files }, signal) => files.stat("/f", { follow: true, signal }),
    list: ({ files }, signal) => files.list("/", { depth: 1, entriesMax: 10, signal }),
    mkdir: ({ files }, signal) => files.mkdir("/d", { parents: true, signal }),
    move: ({ files }, signal) => files.move("/a", "/b", { replace: false, signal }),
    remove: ({ files }, signal) => files.remove("/a", { recursive: true, signal }),
    readFile: ({ files }, signal) => files.readFile("/f", { signal }),
    writeFile: ({ files }, signal) => files.writeFile("/f", Buffer.alloc(3_000_000), { how: "replace", parents: false, signal }),
    "writeFile from a source": ({ files }, signal) => files.writeFile("/f", never(), { how: "replace", parents: false, signal }),
    watch: ({ files }, signal) => files.watch("/", { recursive: true, signal }),
    tarIn: ({ files }, signal) => files.tarIn("/", Buffer.alloc(1_024), { signal }),
    tarOut: ({ files }, signal) => files.tarOut("/", { exclude: [], signal }),
  };
  test.each(Object.entries(calls))("cancels %s immediately and notifies the guest", async (_name, call) => {
    const { connection, peer } = await connect(silent);
    const abort = new AbortController();
    const fate = fateOf(call(connection, abort.signal));
    await pass(1);
    abort.abort();
    await pass(1);
    expect(fate.now()).toBe("cancelled");
    expect(peer.seen.at(-1)?.type).toBe("CANCEL");
    expect(fateOf(call(connection, abort.signal)).now()).toBe("waits");
    await pass(0);
    expect(peer.seen.at(-1)?.type).toBe("CANCEL");
  });
});

describe("a process", () => {
  async function start(onFrame: Answering, condition: GuestCondition) {
    const connected = await connect((peer, frame) => {
      onFrame(peer, frame);
      if (frame.type === "SPAWN") peer.started(frame.stream, refOf(frame));
    }, condition);
    const process = await connected.connection.spawn({ ref: "r", argv: ["sleep"], cwd: "/", timeoutMs: 8_000 });
    process.discardOutput();
    let outcome = "waits";
    void process.ended.then(({ kind }) => {
      outcome = kind;
    });
    return { ...connected, process, outcome: () => outcome };
  }

  test("is lost soon after its timeout if the guest is stopped", async () => {
    const { outcome } = await start(silent, "stopped");
    await pass(17);
    expect(outcome()).toBe("waits");
    await pass(8);
    expect(outcome()).toBe("lost");
  });

  test("is lost eventually if a live guest never reports its end", async () => {
    const { outcome } = await start(pongs, "running");
    await pass(60);
    expect(outcome()).toBe("waits");
    await pass(15);
    expect(outcome()).toBe("lost");
  });

  test("keeps waiting while the sandbox is frozen", async () => {
    const { outcome, peer } = await start(silent, "frozen");
    await pass(300);
    expect(outcome()).toBe("waits");
    peer.ended((await peer.next("SPAWN")).stream);
    await pass(1);
    expect(outcome()).toBe("exited");
  });

  test("is lost if it is killed while the guest does not answer", async () => {
    const { process, outcome } = await start(silent, "stopped");
    const fate = fateOf(process.kill());
    await pass(17);
    expect([fate.now(), outcome()]).toEqual(["timeout stopped", "lost"]);
  });
});

test("answered requests leave no timers behind", async () => {
  const { connection } = await connect((peer, { type, stream }) => {
    if (type === "STAT") peer.sendFields("OK", stream, answers.file, file);
    if (type === "FORGET") peer.sendFields("ERROR", stream, shapes.ERROR, { code: 2, message: "no" });
  });
  await connection.files.stat("/f", { follow: true });
  await connection.forget("r").catch(() => {});
  await pass(2);
  expect(vi.getTimerCount()).toBe(0);
});
