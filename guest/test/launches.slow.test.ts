import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { endianness, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { guestBinary } from "./files-client.ts";

const START = 1;
const INPUT = 2;
const KILL = 3;
const STARTED = 1;
const OUTPUT = 2;
const COMPLAINT = 3;
const ENDED = 4;

interface Answer {
  launch: number;
  kind: number;
  bytes: Buffer;
}

const number = (value: number) => Buffer.from(new Int32Array([value]).buffer);
const numberIn = (bytes: Buffer, at = 0) => (endianness() === "LE" ? bytes.readInt32LE(at) : bytes.readInt32BE(at));
const frame = (launch: number, kind: number, bytes: Buffer | string = "") =>
  Buffer.concat([number(launch), number(kind), number(Buffer.byteLength(bytes)), Buffer.from(bytes)]);
const plan = (...fields: string[]) => fields.map((field) => `${field}\0`).join("");

let base = "";
let server: ChildProcess;
let answers: AsyncGenerator<Answer>;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-test-launches-"));
  // With sanitizers, every launch would check for leaks at its end, for seconds; other errors are still found.
  const env = { PATH: "/usr/bin:/bin", ASAN_OPTIONS: "detect_leaks=0" };
  server = spawn(guestBinary, ["launches"], { stdio: ["pipe", "pipe", "pipe"], env, cwd: "/" });
  server.stdin?.on("error", () => {});
  answers = read(server);
});
afterEach(async () => {
  server.kill("SIGKILL");
  rmSync(base, { recursive: true, force: true });
});

async function* read(from: ChildProcess): AsyncGenerator<Answer> {
  let rest = Buffer.alloc(0);
  for await (const chunk of from.stdout ?? []) {
    rest = Buffer.concat([rest, chunk as Buffer]);
    while (rest.length >= 12 && rest.length >= 12 + numberIn(rest, 8)) {
      const whole = 12 + numberIn(rest, 8);
      yield { launch: numberIn(rest), kind: numberIn(rest, 4), bytes: rest.subarray(12, whole) };
      rest = rest.subarray(whole);
    }
  }
}

const send = (...frames: Buffer[]) => void server.stdin?.write(Buffer.concat(frames));
async function answer(): Promise<Answer> {
  const { done, value } = await answers.next();
  if (done) throw new Error("there are no more answers");
  return value;
}
/** Collects everything that is reported about a launch until its end. */
async function whole(launch: number): Promise<{ pid: number; output: string; complaint: string; status: number }> {
  const report = { pid: 0, output: "", complaint: "", status: Number.NaN };
  for (;;) {
    const { launch: of, kind, bytes } = await answer();
    expect(of).toBe(launch);
    if (kind === STARTED) report.pid = numberIn(bytes);
    if (kind === OUTPUT) report.output += bytes.toString();
    if (kind === COMPLAINT) report.complaint += bytes.toString();
    if (kind === ENDED) return { ...report, status: numberIn(bytes) };
  }
}
/** A program that prints its pid and waits. */
const waiting = plan("argument", "sh", "argument", "-c", "argument", "echo $$; exec sleep 600");

describe("caisson-guest launches", () => {
  it("starts what is requested, and passes on its output and exit status", async () => {
    const folder = join(base, "folder");
    mkdirSync(folder);
    send(frame(7, START, "remove"), frame(7, INPUT, plan("remove", folder)));
    expect(await whole(7)).toEqual({ pid: expect.any(Number), output: "", complaint: "", status: 0 });
    expect(existsSync(folder)).toBe(false);
    const script = "echo out; echo err >&2; exit 3";
    send(frame(8, START, "inside"), frame(8, INPUT, plan("argument", "sh", "argument", "-c", "argument", script)));
    expect(await whole(8)).toMatchObject({ output: "out\n", complaint: "err\n", status: 3 });
    send(frame(9, START, "nonsense"), frame(9, INPUT));
    expect(await whole(9)).toMatchObject({ complaint: expect.stringContaining("unknown command nonsense"), status: 125 });
  });

  it("keeps launches with large plans apart, without each other's descriptors", async () => {
    const count = 16;
    const large = "x".repeat(100_000);
    const list = 'ls /proc/self/fd | tr "\\n" " "; printf %s "$1" | wc -c';
    const input = plan(...["sh", "-c", list, "sh", large].flatMap((argument) => ["argument", argument]));
    for (let n = 1; n <= count; n += 1) send(frame(n, START, "inside"));
    for (let n = 1; n <= count; n += 1) send(frame(n, INPUT, input));
    const output = new Map<number, string>();
    for (let ended = 0; ended < count; ) {
      const { launch, kind, bytes } = await answer();
      if (kind === OUTPUT) output.set(launch, `${output.get(launch) ?? ""}${bytes}`);
      if (kind === ENDED) ended += 1;
    }
    expect([...output.values()]).toEqual(Array.from({ length: count }, () => expect.stringMatching(/^0 1 2 3 100000\n$/)));
  });

  it("kills a launch on request, and ignores requests that crossed with its end", async () => {
    send(frame(1, START, "inside"), frame(1, INPUT, waiting));
    expect(await answer()).toMatchObject({ kind: STARTED });
    expect(await answer()).toMatchObject({ kind: OUTPUT });
    send(frame(1, KILL), frame(1, KILL));
    expect(await whole(1)).toMatchObject({ status: -1 });
    send(frame(1, KILL), frame(1, INPUT, "late"), frame(2, START, "remove"), frame(2, INPUT));
    expect(await whole(2)).toMatchObject({ status: 0 });
  });

  it("ignores terminal signals, and ends its launches with the requests", async () => {
    send(frame(1, START, "inside"), frame(1, INPUT, waiting));
    await answer();
    const pid = Number((await answer()).bytes.toString());
    for (const signal of ["SIGINT", "SIGQUIT", "SIGHUP"] as const) server.kill(signal);
    send(frame(2, START, "remove"), frame(2, INPUT));
    expect(await whole(2)).toMatchObject({ status: 0 });
    const ended = once(server, "exit");
    server.stdin?.end();
    expect(await ended).toEqual([0, null]);
    // `exec` keeps the parent-death signal that the launcher set.
    await expect.poll(() => isThere(pid)).toBe(false);
  });

  it.each([
    ["an unknown kind", frame(1, 9)],
    ["a frame larger than any plan", Buffer.concat([number(1), number(INPUT), number(1 << 30)])],
    ["a launch number in use", Buffer.concat([frame(1, START, "inside"), frame(1, START, "inside")])],
    ["an overlong name", frame(1, START, "x".repeat(33))],
  ])("exits after %s", async (_name, bytes) => {
    const ended = once(server, "exit");
    send(bytes);
    expect(await ended).toEqual([125, null]);
  });

  it("ignores half a frame when the requests end", async () => {
    const ended = once(server, "exit");
    server.stdin?.end(frame(1, START, "remove").subarray(0, 15));
    expect(await ended).toEqual([0, null]);
  });
});

function isThere(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, "latin1").includes(") Z");
  } catch {
    return false;
  }
}
