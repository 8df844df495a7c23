import type { Ended } from "../contract/outcome.ts";
import type { Bytes, Process, Sandbox, SpawnOptions } from "./sandbox.ts";

export interface RunOptions extends SpawnOptions {
  /** Given to the process as its stdin, which is closed after it. */
  input?: Bytes;
  /** How much of the output is kept, both streams together; default 10 MiB. The rest is read and dropped. */
  collectBytesMax?: number;
}

export interface RunResult {
  ended: Ended;
  /** What it wrote, as UTF-8; what is not UTF-8 becomes the replacement character. */
  stdout: string;
  stderr: string;
  stdoutBytes: Buffer;
  stderrBytes: Buffer;
  /** Whether output was dropped. */
  truncated: boolean;
}

const COLLECT_BYTES = 10 * 1024 * 1024;

/**
 * Starts a process, waits for its end and gives what it wrote. Its outcome is data; throws only what `spawn` throws.
 */
export async function runCommand(sandbox: Sandbox, options: RunOptions): Promise<RunResult> {
  const { input, collectBytesMax = COLLECT_BYTES, ...spawn } = options;
  const process = await sandbox.spawn(input === undefined ? spawn : { ...spawn, stdin: "pipe" });
  // A process may end without reading its input; that is its business.
  if (input !== undefined) void feed(process, input).catch(() => {});
  const stdout: Uint8Array[] = [];
  const stderr: Uint8Array[] = [];
  let left = collectBytesMax;
  let truncated = false;
  for await (const { stream, data } of process.output) {
    const kept = data.length <= left ? data : data.subarray(0, left);
    if (kept.length < data.length) truncated = true;
    left -= kept.length;
    if (kept.length > 0) (stream === "stdout" ? stdout : stderr).push(kept);
  }
  const stdoutBytes = Buffer.concat(stdout);
  const stderrBytes = Buffer.concat(stderr);
  return {
    ended: await process.ended,
    stdout: stdoutBytes.toString(),
    stderr: stderrBytes.toString(),
    stdoutBytes,
    stderrBytes,
    truncated,
  };
}

async function feed(process: Process, input: Bytes): Promise<void> {
  if (input instanceof Uint8Array) await process.write(input);
  else for await (const piece of input) await process.write(piece);
  await process.closeStdin();
}
