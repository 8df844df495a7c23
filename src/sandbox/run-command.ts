import type { Ended } from "../contract/outcome.ts";
import { ignore } from "../lib/failures.ts";
import type { Bytes, Process, Sandbox, SpawnOptions } from "./sandbox.ts";

export interface RunOptions extends SpawnOptions {
  /** Passed to the process as its stdin, which is then closed. */
  input?: Bytes;
  /** The limit of the collected output, both streams together; default 10 MiB. The rest is read and dropped. */
  collectBytesMax?: number;
}

export interface RunResult {
  ended: Ended;
  /** The output as UTF-8, with replacement characters for invalid bytes. */
  stdout: string;
  stderr: string;
  stdoutBytes: Buffer;
  stderrBytes: Buffer;
  /** Whether output was dropped. */
  truncated: boolean;
}

const COLLECT_BYTES = 10 * 1024 * 1024;

/**
 * Runs a process to its end and returns its output. A failed process is a result, not an error: throws only what
 * `spawn` throws.
 */
export async function runCommand(sandbox: Sandbox, options: RunOptions): Promise<RunResult> {
  const { input, collectBytesMax = COLLECT_BYTES, ...spawn } = options;
  const process = await sandbox.spawn(input === undefined ? spawn : { ...spawn, stdin: "pipe" });
  if (input !== undefined) void ignore(feed(process, input), "a process may end without reading its input");
  const stdout: Uint8Array[] = [];
  const stderr: Uint8Array[] = [];
  let left = collectBytesMax;
  let truncated = false;
  for await (const { stream, data } of process.output) {
    const chunk = data.length <= left ? data : data.subarray(0, left);
    if (chunk.length < data.length) truncated = true;
    left -= chunk.length;
    if (chunk.length > 0) (stream === "stdout" ? stdout : stderr).push(chunk);
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
