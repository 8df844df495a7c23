import { CaissonError } from "../../contract/error/error.ts";
import type { HeldSandbox, OutputChunk, Process } from "../../verbs/held-sandbox.ts";

/** How much sent output is retained for a client that reconnects. */
const RETAINED_BYTES_MAX = 1024 * 1024;
/**
 * Smaller than the retained output, so that output in transit is always retained, along with the next requested piece.
 */
export const PROCESS_WINDOW_BYTES_MAX = RETAINED_BYTES_MAX / 2;

type OutputStream = OutputChunk["stream"];

/**
 * One process of a sandbox, from its start or attach until no client may reconnect to it. It has one reader at a time.
 */
export interface ProcessEntry {
  readonly process: Process;
  readonly held: HeldSandbox;
  /** Whether the process continues without a reader. */
  readonly keepsLastOutput: boolean;
  /** How long the process survives a broken connection of its reader. Null if no connection controls its life. */
  graceMs: number | null;
  /** Bytes of input received, written or not. */
  stdinBytes: number;
  /** The queue of operations on its input, in order. */
  input: Promise<void>;
  /** The number of the current reader. Earlier ones are ignored. */
  reader: number;
  /** Whether the process has ended on its own. Processes that it left running inside must then survive. */
  hasEnded?: boolean;
  /** Takes the process away from the current reader. */
  supersede: (() => void) | null;
  /** Runs until no client may reconnect. */
  graceTimer: NodeJS.Timeout | null;
  /**
   * Returns the next piece of output, or null after the last. Repeated calls before it arrives return the same piece.
   */
  next(): Promise<OutputChunk | null>;
  /**
   * Returns output that was already sent, from these offsets on. Throws `gone` for output that is no longer retained,
   * `invalid` for an offset past the end.
   */
  sentFrom(offsets: { stdoutOffset?: number | undefined; stderrOffset?: number | undefined }): OutputChunk[];
}

export function createProcessEntry(options: {
  process: Process;
  held: HeldSandbox;
  keepsLastOutput: boolean;
  graceMs: number | null;
}): ProcessEntry {
  const output = options.process.output[Symbol.asyncIterator]();
  const retained: OutputChunk[] = [];
  let sentBytes = 0;
  /** The offsets where each stream's retained output begins and ends; null before the first byte. */
  const ends: Record<OutputStream, number | null> = { stdout: null, stderr: null };
  const starts: Record<OutputStream, number | null> = { stdout: null, stderr: null };
  let pending: Promise<OutputChunk | null> | null = null;
  const keep = (chunk: OutputChunk) => {
    starts[chunk.stream] ??= chunk.offset;
    ends[chunk.stream] = chunk.offset + chunk.data.length;
    retained.push(chunk);
    sentBytes += chunk.data.length;
    while (sentBytes - (retained[0]?.data.length ?? 0) >= RETAINED_BYTES_MAX) {
      const dropped = retained.shift() as OutputChunk;
      sentBytes -= dropped.data.length;
      starts[dropped.stream] = dropped.offset + dropped.data.length;
    }
  };
  return {
    ...options,
    stdinBytes: 0,
    input: Promise.resolve(),
    reader: 0,
    supersede: null,
    graceTimer: null,
    next() {
      pending ??= output.next().then(({ done, value }) => {
        pending = null;
        if (done) return null;
        keep(value);
        return value;
      });
      return pending;
    },
    sentFrom({ stdoutOffset, stderrOffset }) {
      const offsets: Record<OutputStream, number | undefined> = { stdout: stdoutOffset, stderr: stderrOffset };
      for (const stream of ["stdout", "stderr"] as const)
        checkOffset(offsets[stream], { stream, start: starts[stream], end: ends[stream] });
      return retained.flatMap((chunk) => {
        const from = Math.max(0, (offsets[chunk.stream] ?? 0) - chunk.offset);
        if (from >= chunk.data.length) return [];
        return [{ ...chunk, offset: chunk.offset + from, data: chunk.data.subarray(from) }];
      });
    },
  };
}

function checkOffset(
  offset: number | undefined,
  { stream, start, end }: { stream: OutputStream; start: number | null; end: number | null },
): void {
  if (offset === undefined || start === null || end === null) return;
  if (offset < start) throw new CaissonError("gone", `the output on ${stream} before ${start} is no longer stored`);
  if (offset > end) throw new CaissonError("invalid", `the offset ${offset} is past the end of ${stream}`);
}
