import { describe, expect, test } from "vitest";
import { encodeFields, shapes } from "../../src/sandbox/guest/fields.ts";
import { decodeStdinAck, encodeStdinEnd, encodeStdinHead } from "../../src/sandbox/guest/raw.ts";
import { finish, run, spawnIn, started } from "./guest-commands.ts";
import { type Stream, useGuest } from "./guest-driver.ts";

const { guest, link } = useGuest();

const WINDOW = 262_144;

function feed(stream: Stream, offset: number, data: Uint8Array): void {
  link.send(encodeStdinHead(stream.id, offset, data.length));
  link.send(data);
}

async function acknowledged(stream: Stream, upTo: number): Promise<void> {
  for (;;) {
    const frame = await stream.nextOther("OUTPUT");
    expect(frame.type).toBe("STDIN_ACK");
    if (decodeStdinAck(frame.payload) >= upTo) return;
  }
}

/** Returns what has arrived on a stream up to the text. */
async function outputUntil(stream: Stream, wanted: string): Promise<string> {
  let text = "";
  while (!text.includes(wanted)) {
    const frame = await stream.nextOther("STDIN_ACK");
    expect(frame.type).toBe("OUTPUT");
    text += frame.payload.subarray(9).toString();
  }
  return text;
}

describe("stdin", () => {
  test("is at end of file if it is closed", async () => {
    expect((await run(link, { argv: ["cat"] })).ended).toMatchObject({ kind: 1, exitCode: 0 });
  });

  test("passes several megabytes through the window, each byte once", async () => {
    const { stream } = spawnIn(link, { argv: ["md5sum"], stdin: true });
    await started(stream);
    const chunk = Buffer.alloc(65_536, "0123456789abcdef");
    let offset = 0;
    for (let i = 0; i < 64; i++) {
      feed(stream, offset, chunk);
      offset += chunk.length;
      if (offset % WINDOW === 0) await acknowledged(stream, offset);
      // The guest skips bytes that it already has.
      if (i === 40) feed(stream, offset - 1_000, chunk.subarray(0, 1_000));
    }
    link.send(encodeStdinEnd(stream.id, offset));
    // 4 MiB of that pattern.
    const expected = await run(link, { argv: ["sh", "-c", "yes 0123456789abcdef | tr -d '\\n' | head -c 4194304 | md5sum"] });
    expect((await finish(link, stream)).stdout).toBe(expected.stdout);
  });

  test("is discarded if the process ends without reading it", async () => {
    const { stream } = spawnIn(link, { argv: ["sleep", "0.2"], stdin: true });
    await started(stream);
    feed(stream, 0, Buffer.alloc(WINDOW - 10));
    expect((await finish(link, stream)).ended).toMatchObject({ kind: 1, exitCode: 0 });
  });

  test("is discarded and acknowledged if its reader closed it", async () => {
    // Lives until it is killed: a command that ends on its own could do so before the last acknowledgment.
    const { ref, stream } = spawnIn(link, { argv: ["sh", "-c", "exec <&-; echo closed; exec sleep 600"], stdin: true });
    await started(stream);
    await outputUntil(stream, "closed");
    for (let offset = 0; offset < 1_048_576; offset += 131_072) {
      feed(stream, offset, Buffer.alloc(131_072));
      await acknowledged(stream, offset + 131_072);
    }
    expect(await link.ask("KILL", { ref })).toBe("OK");
    const frame = await stream.nextOther("STDIN_ACK", "OUTPUT");
    expect(frame.type).toBe("ENDED");
  });

  test.each([
    ["a gap", (id: number) => [encodeStdinHead(id, 5, 1), Buffer.from("x")]],
    ["more than the window", (id: number) => [0, 1].flatMap((i) => [encodeStdinHead(id, i * 200_000, 200_000), Buffer.alloc(200_000)])],
    ["a wrong total", (id: number) => [encodeStdinEnd(id, 5)]],
  ])("closes the connection after %s, but keeps the process", async (_, frames) => {
    const broken = await guest.link();
    const { ref, stream } = spawnIn(broken, { argv: ["sleep", "30"], stdin: true });
    await started(stream);
    for (const bytes of frames(stream.id)) broken.send(bytes);
    await broken.closed;
    const again = link.open("ATTACH", { ref });
    expect(await started(again)).toMatchObject({ existing: true });
    expect(await link.ask("KILL", { ref })).toBe("OK");
  });
});

describe("a terminal", () => {
  const terminal = (script: string) =>
    spawnIn(link, { argv: ["sh", "-c", script], pty: true, cols: 101, rows: 33, env: ["PATH=/bin:/usr/bin", "TERM=xterm"] });

  test("has the requested size and belongs to the command", async () => {
    const { stream } = terminal("tty; stty size; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo yes; ps -o tty= -p $$");
    expect(await started(stream)).toMatchObject({ pty: true });
    const { stdout, ended } = await finish(link, stream);
    expect(stdout).toMatch(/^\/dev\/pts\/\d+\r\n33 101\r\nyes\r\npts\/\d+\r\n$/);
    expect(ended).toMatchObject({ kind: 1, exitCode: 0, stderrBytes: 0 });
  });

  test("reports a change of its size", async () => {
    const { ref, stream } = terminal("trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done");
    await started(stream);
    await outputUntil(stream, "ready");
    link.send(encodeFields("RESIZE", stream.id, shapes.RESIZE, { cols: 55, rows: 22 }));
    await outputUntil(stream, "22 55");
    expect(await link.ask("KILL", { ref })).toBe("OK");
  });

  test("passes its interrupt key, and every byte in raw mode", async () => {
    // A shell that is just starting another program may swallow the key; one with a trap never does.
    const untilInterrupted = "trap 'trap - INT; kill -INT $$' INT; echo cooked; while :; do sleep 0.05; done";
    const { stream } = terminal(
      `stty raw -echo; echo ready; head -c 256 | od -An -v -tu1 | tr -s ' \\n\\r' ' '; stty sane; ${untilInterrupted}`,
    );
    await started(stream);
    await outputUntil(stream, "ready");
    feed(stream, 0, Buffer.from(Array.from({ length: 256 }, (_, i) => i)));
    const all = Array.from({ length: 256 }, (_, i) => i).join(" ");
    expect(await outputUntil(stream, "cooked")).toContain(all);
    feed(stream, 256, Buffer.from([3]));
    expect((await finishRest(stream)).kind).toBe(2);
  });

  test("ends its input with a character", async () => {
    const { stream } = terminal("stty -echo; echo ready; cat; echo over");
    await started(stream);
    await outputUntil(stream, "ready");
    feed(stream, 0, Buffer.from("line\n"));
    link.send(encodeStdinEnd(stream.id, 5));
    expect(await outputUntil(stream, "over")).toContain("line\r\n");
  });
});

async function finishRest(stream: Stream): Promise<{ kind: number; signal: number }> {
  const frame = await stream.nextOther("OUTPUT", "STDIN_ACK");
  expect(frame.type).toBe("ENDED");
  return { kind: Number(frame.payload.readBigUInt64LE(5)), signal: Number(frame.payload.readBigUInt64LE(31)) };
}
