import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { decodeFields, encodeFields, shapes } from "../../src/sandbox/guest/fields.ts";
import { encodeFrame, writeFrameHeader } from "../../src/sandbox/guest/frame.ts";
import { encodeDataHead } from "../../src/sandbox/guest/raw.ts";
import { isSanitised } from "./files-client.ts";
import { finish, newRef, shell, spawnIn, started } from "./guest-commands.ts";
import { errorCode, startGuest, useGuest } from "./guest-driver.ts";
import { childrenNamed, ownSeconds, pidsSleeping, statusOf, until } from "./machine-processes.ts";

const { guest, link } = useGuest();

const header = (type: number, length: number, change: (bytes: Buffer) => void = () => {}): Buffer => {
  const bytes = Buffer.alloc(12);
  writeFrameHeader(bytes, type, 1, length);
  change(bytes);
  return bytes;
};

describe("a connection", () => {
  test("receives a WELCOME that describes the guest", async () => {
    const other = await guest.link({ greet: false });
    other.send(encodeFields("HELLO", 0, shapes.HELLO, { version: 1 }));
    const welcome = decodeFields("WELCOME", shapes.WELCOME, (await other.stream(0).next()).payload);
    expect(welcome).toMatchObject({ version: 1, uid: process.getuid?.(), gid: process.getgid?.(), rootAllowed: false });
    expect(welcome.bootId).toHaveLength(16);
    other.close();
  });

  test("is refused and closed if it speaks another version", async () => {
    const other = await guest.link({ greet: false });
    other.send(encodeFields("HELLO", 0, shapes.HELLO, { version: 2 }));
    expect(errorCode(await other.stream(0).next())).toBe("unsupported");
    await other.closed;
  });

  test.each<[string, (id: number) => Uint8Array]>([
    ["a length of 0xFFFFFFFF", () => header(3, 0xffffffff)],
    ["a length one over the bound", () => header(3, 262_145)],
    ["an unknown type", () => header(0x3f, 0)],
    ["a type of the other direction", () => header(2, 0)],
    ["a flag", () => header(3, 0, (bytes) => bytes.writeUInt8(1, 5))],
    ["a reserved bit", () => header(3, 0, (bytes) => bytes.writeUInt8(0x80, 7))],
    ["a field past the payload", () => Buffer.concat([header(0x1b, 6), Buffer.from([1, 2, 0, 0, 0, 65])])],
    ["half a field", () => Buffer.concat([header(0x1b, 3), Buffer.from([1, 2, 0])])],
    ["a request on an even stream", () => encodeFrame("LIST", 2)],
    ["a request on stream 0", () => encodeFrame("LIST", 0)],
    ["a second greeting", () => encodeFields("HELLO", 0, shapes.HELLO, { version: 1 })],
    ["a ping of 65 bytes", () => encodeFrame("PING", 1, Buffer.alloc(65))],
    ["an acknowledgment of 8 bytes", (id) => encodeFrame("ACK", id, Buffer.alloc(8))],
    ["an acknowledgment of descriptor 3", (id) => encodeFrame("ACK", id, Buffer.from([3, 0, 0, 0, 0, 0, 0, 0, 0]))],
    ["a stream that is already open", (id) => encodeFields("KILL", id, shapes.KILL, { ref: "x" })],
  ])("is closed after %s, and no other connection is", async (_, bytes) => {
    const other = await guest.link();
    const { ref, stream } = spawnIn(other, { argv: ["sleep", "30"] });
    await started(stream);
    other.send(bytes(stream.id));
    await other.closed;
    await link.ping();
    // Its process keeps running.
    const again = link.open("ATTACH", { ref });
    expect(await started(again)).toMatchObject({ existing: true });
    expect(await link.ask("KILL", { ref })).toBe("OK");
  });

  test("is closed if it sends anything before HELLO", async () => {
    for (const bytes of [encodeFrame("PING", 1), encodeFrame("LIST", 1), Buffer.from("GET / HTTP/1.1\r\n\r\n")]) {
      const other = await guest.link({ greet: false });
      other.send(bytes);
      await expect(other.closed, "it is closed").resolves.toBeUndefined();
    }
    await expect(link.ping(), "others are served").resolves.toBeUndefined();
  });

  test("ignores frames for closed streams", async () => {
    for (const type of ["DATA", "END", "CANCEL", "ACK", "STDIN", "STDIN_END", "RESIZE"] as const) link.frame(type, 99_999, Buffer.alloc(3));
    await expect(link.ping(), "others are served").resolves.toBeUndefined();
  });

  test("accepts bytes one at a time", async () => {
    const other = await guest.link();
    for (const byte of encodeFields("SPAWN", 1, shapes.SPAWN, { ref: newRef(), argv: ["true"], env: ["PATH=/bin"], cwd: "/" })) {
      other.send(Buffer.from([byte]));
      await new Promise(setImmediate);
    }
    const stream = other.stream(1);
    await started(stream);
    expect((await finish(other, stream)).ended.exitCode).toBe(0);
    other.close();
  });

  // The sanitizer holds freed memory back on purpose.
  test.skipIf(isSanitised)("leaves no memory behind after hundreds of broken ones", async () => {
    const round = async () => {
      for (let i = 0; i < 250; i++) {
        const other = await guest.link();
        other.send(header(3, 200_000));
        other.send(Buffer.alloc(100_000));
        other.send(encodeFrame("PING", 1));
        other.close();
        await other.closed;
      }
      await link.ping();
      return statusOf(guest.child.pid as number, "VmRSS");
    };
    const first = await round();
    expect((await round()) - first).toBeLessThan(512);
  });

  test("is accepted and closed at once beyond the sixteenth", async () => {
    const many = await Promise.all(Array.from({ length: 15 }, () => guest.link()));
    const extra = connect(guest.socketPath);
    const closed = new Promise((resolve) => extra.on("close", () => resolve("closed")).on("error", () => {}));
    expect(await closed).toBe("closed");
    for (const each of many) each.close();
    await until("there is room again", async () => {
      const again = await guest.link({ greet: false });
      again.send(encodeFields("HELLO", 0, shapes.HELLO, { version: 1 }));
      const welcomed = await again
        .stream(0)
        .next()
        .then(
          () => true,
          () => false,
        );
      again.close();
      return welcomed;
    });
  });
});

describe("a token", () => {
  test("must match completely", async () => {
    const path = join(guest.folder, "token");
    writeFileSync(path, "correct horse\n");
    await using guarded = await startGuest({ args: ["--not-init", "--token-file", path] });
    const good = await guarded.link({ token: "correct horse" });
    await good.ping();
    for (const token of ["correct hors", "correct horse ", "", "Correct horse"]) {
      const bad = await guarded.link({ greet: false });
      bad.send(encodeFields("HELLO", 0, shapes.HELLO, { version: 1, token: Buffer.from(token) }));
      expect(errorCode(await bad.stream(0).next())).toBe("denied");
      await bad.closed;
    }
    await good.ping();
  });
});

describe("when a process of the guest dies", () => {
  test("a new spawner replaces the old one", async () => {
    const spawner = childrenNamed(guest.child.pid as number, "caisson-spawn")[0] as number;
    process.kill(spawner, "SIGKILL");
    const all = await Promise.all(Array.from({ length: 20 }, () => shell(link, "echo on")));
    expect(all.every(({ stdout }) => stdout === "on\n")).toBe(true);
    expect(await link.ask("STAT", { path: "/" })).toBe("OK");
  });

  test("a supervisor's tree dies with it, and the next command runs", async () => {
    const seconds = ownSeconds(67);
    const { stream } = spawnIn(link, { argv: ["sh", "-c", `setsid sleep ${seconds} & sleep ${seconds}`] });
    const { pid } = await started(stream);
    await until("the tree runs", () => pidsSleeping(seconds).length === 2);
    const supervisor = statusOf(pid, "PPid");
    process.kill(supervisor, "SIGKILL");
    expect((await finish(link, stream)).ended).toMatchObject({ kind: 2, signal: 9 });
    await until("no process remains", () => pidsSleeping(seconds).length === 0);
    expect((await shell(link, "echo on")).stdout).toBe("on\n");
  });
});

describe("a fence", () => {
  test("discards an earlier holder's write without affecting other connections", async () => {
    const path = join(guest.folder, "fenced");
    writeFileSync(path, "new");
    const earlier = await guest.link();
    const other = await guest.link();
    expect(await earlier.ask("FENCE", { name: "run_a", epoch: 1 })).toBe("OK");
    expect(await other.ask("FENCE", { name: "run_b", epoch: 1 })).toBe("OK");
    const write = earlier.open("WRITE", { path });
    earlier.send(Buffer.concat([encodeDataHead(write.id, 3), Buffer.from("old")]));
    const running = spawnIn(earlier, { argv: ["sleep", "7.31"] });
    await started(running.stream);
    const later = await guest.link();
    const errorFrame = earlier.stream(0).next();
    expect(await later.ask("FENCE", { name: "run_a", epoch: 2 })).toBe("OK");
    expect(errorCode(await errorFrame)).toBe("superseded");
    // Like a driver that wakes up after another one has taken over.
    earlier.frame("END", write.id);
    await earlier.closed;
    expect(readFileSync(path, "utf8")).toBe("new");
    expect(readdirSync(guest.folder).filter((name) => name.startsWith(".caisson-"))).toEqual([]);
    const again = await guest.link();
    expect(await again.ask("FENCE", { name: "run_a", epoch: 1 })).toBe("superseded");
    expect(await again.ask("FENCE", { name: "", epoch: 1 })).toBe("invalid");
    for (const alive of [link, other, later]) await alive.ping();
    expect(await later.ask("KILL", { ref: running.ref })).toBe("OK");
    for (const each of [other, later, again]) each.close();
  });
});
