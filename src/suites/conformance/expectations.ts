import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { CaissonError, type ErrorCode } from "../../contract/error/error.ts";
import type { Ended } from "../../contract/outcome.ts";
import { ignore } from "../../lib/failures.ts";
import type { Bytes, Process, Sandbox } from "../../sandbox/sandbox.ts";
import type { ConformanceContext } from "./context.ts";
import { type ProgramName, program } from "./programs.ts";

/** Awaits a promise with a time limit, so a runtime that hangs fails its test instead of the whole run. */
export async function within<T>(context: { patienceMs: number }, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new assert.AssertionError({ message: `${what} took longer than ${context.patienceMs} ms` })),
      context.patienceMs,
    );
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Expects a call to fail with one of the codes, in time. */
export async function rejectsWith(
  context: { patienceMs: number },
  codes: ErrorCode | readonly ErrorCode[],
  what: string,
  call: () => Promise<unknown>,
): Promise<CaissonError> {
  const expected = typeof codes === "string" ? [codes] : codes;
  let value: unknown;
  try {
    value = await within(context, what, call());
  } catch (error) {
    if (!(error instanceof CaissonError)) throw error;
    assert.ok(expected.includes(error.code), `${what}: expected ${expected.join(" or ")}, got ${error.code}: ${error.message}`);
    return error;
  }
  assert.fail(`${what}: expected ${expected.join(" or ")}, but it succeeded with ${JSON.stringify(value)?.slice(0, 200)}`);
}

export interface Finished {
  stdout: Buffer;
  stderr: Buffer;
  ended: Ended;
}

/** Reads a process's output to its end. Checks that each stream's offsets have no gap or overlap. */
export async function finish(context: { patienceMs: number }, process: Process, from = { stdout: 0, stderr: 0 }): Promise<Finished> {
  const parts = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
  const next = { ...from };
  const reading = (async () => {
    for await (const chunk of process.output) {
      assert.equal(chunk.offset, next[chunk.stream], `${chunk.stream} continues at the previous offset`);
      next[chunk.stream] += chunk.data.length;
      parts[chunk.stream].push(chunk.data);
    }
    return process.ended;
  })();
  const ended = await within(context, "the process's end", reading);
  return { stdout: Buffer.concat(parts.stdout), stderr: Buffer.concat(parts.stderr), ended };
}

type RunOptions = Partial<Omit<Parameters<Sandbox["spawn"]>[0], "argv">> & { args?: string[] };

/**
 * Starts a named program of the suite. Passes path arguments relative to the cwd, because not every runtime has a real
 * `/workspace`.
 */
export function start(sandbox: Sandbox, name: ProgramName, { args = [], ...options }: RunOptions = {}): Promise<Process> {
  const relative = args.map((arg) => (arg.startsWith("/workspace/") ? arg.slice("/workspace/".length) : arg));
  return sandbox.spawn({ argv: program(name, ...relative), ...options });
}

/** Runs a named program to its end. */
export async function run(context: ConformanceContext, sandbox: Sandbox, name: ProgramName, options: RunOptions = {}): Promise<Finished> {
  return finish(context, await within(context, `starting ${name}`, start(sandbox, name, options)));
}

/** Runs a named program that must exit with 0, and returns its stdout. */
export async function runOk(context: ConformanceContext, sandbox: Sandbox, name: ProgramName, ...args: string[]): Promise<string> {
  const { stdout, stderr, ended } = await run(context, sandbox, name, { args });
  assert.equal(describeEnd(ended), "exited 0", `${name}: ${stderr.toString().slice(0, 500)}`);
  return stdout.toString();
}

/** Describes an outcome in a short text, for comparisons. */
export function describeEnd(ended: Ended): string {
  switch (ended.kind) {
    case "exited":
      return `exited ${ended.exitCode}`;
    case "signaled":
      return `signaled ${ended.signal}`;
    case "killed":
      return `killed ${ended.why}`;
    default:
      return ended.kind;
  }
}

/** Reads output piece by piece, for programs that expect replies. */
export function reader(context: { patienceMs: number }, process: Process) {
  const iterator = process.output[Symbol.asyncIterator]();
  let stdout = "";
  return {
    /** Returns all of stdout so far, as soon as it ends in the text. */
    async until(text: string): Promise<string> {
      while (!stdout.endsWith(text)) {
        const { done, value } = await within(
          context,
          `output up to ${JSON.stringify(text)}, got ${JSON.stringify(stdout)},`,
          iterator.next(),
        );
        if (done) assert.fail(`the output ended before ${JSON.stringify(text)}: ${JSON.stringify(stdout)}`);
        if (value.stream === "stdout") stdout += Buffer.from(value.data).toString("latin1");
      }
      return stdout;
    },
    /** Returns one more chunk of either stream, or null at the end. */
    async next() {
      const { done, value } = await within(context, "the next output", iterator.next());
      return done ? null : value;
    },
  };
}

/** Polls until the condition holds, for states that have no event. */
export async function eventually(context: { patienceMs: number }, what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + context.patienceMs;
  while (!(await within(context, what, holds()))) {
    if (Date.now() > deadline) assert.fail(`${what}: not true after ${context.patienceMs} ms`);
    await delay(20);
  }
}

/** Whether the promise is still pending after a moment in which a wrong one would have settled. */
export async function staysPending(promise: Promise<unknown>, ms = 200): Promise<boolean> {
  const pending = Symbol("pending");
  const first = await Promise.race([ignore(promise, "a failure is not pending"), delay(ms, pending)]);
  return first === pending;
}

export async function readAll(context: { patienceMs: number }, iterable: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const reading = (async () => {
    const parts: Uint8Array[] = [];
    for await (const part of iterable) parts.push(part);
    return Buffer.concat(parts);
  })();
  return within(context, "reading to the end", reading);
}

export async function readText(context: { patienceMs: number }, sandbox: Sandbox, path: string): Promise<string> {
  return (await readAll(context, await within(context, `opening ${path}`, sandbox.readFile(path)))).toString();
}

export function writeText(sandbox: Sandbox, path: string, text: string): Promise<{ bytes: number }> {
  return sandbox.writeFile(path, Buffer.from(text));
}

/** Counts the running processes whose command line contains the text. */
export async function liveWith(sandbox: Sandbox, text: string): Promise<number> {
  const processes = await sandbox.processes();
  return processes.filter((each) => each.state === "running" && each.command.includes(text)).length;
}

let sleeps = 0;
/**
 * Returns a number of seconds that no other process sleeps, to identify a process in the list. The sleep never ends.
 */
export function uniqueSleep(): string {
  sleeps += 1;
  return String(4_000_000 + (process.pid % 10_000) * 100 + sleeps);
}

/**
 * Returns bytes with no short period, always the same for the same length, so that a lost, doubled or swapped block is
 * visible.
 */
export function patternBytes(length: number): Buffer {
  const bytes = Buffer.alloc(length);
  let state = 0x2545f491;
  for (let i = 0; i < length; i += 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[i] = state & 0xff;
  }
  return bytes;
}

/** Compares without printing megabytes of differences. */
export function sameBytes(actual: Uint8Array, expected: Uint8Array, what: string): void {
  assert.equal(actual.length, expected.length, `${what}: length`);
  const at = Buffer.compare(Buffer.from(actual), Buffer.from(expected)) === 0 ? -1 : actual.findIndex((byte, i) => byte !== expected[i]);
  assert.equal(at, -1, `${what}: first difference at byte ${at}`);
}

export async function* inPieces(bytes: Bytes & Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
