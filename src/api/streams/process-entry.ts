import { CaissonError } from "../../contract/error.ts";
import type { HeldSandbox, OutputChunk, Process } from "../../station/sandboxes/held-sandbox.ts";

/** How much output that was sent is kept for a client that comes back. */
const RETAINED_BYTES_MAX = 1024 * 1024;
/** Smaller, so that what is on its way is always kept, with what was asked for after it. */
export const PROCESS_WINDOW_BYTES_MAX = RETAINED_BYTES_MAX / 2;

type OutputStream = OutputChunk["stream"];

/** One process of a sandbox, from its start or attach until nobody may come back to it. One reads it at a time. */
export interface ProcessEntry {
  readonly process: Process;
  readonly held: HeldSandbox;
  /** Whether it goes on by itself when nobody reads it. */
  readonly keepsLastOutput: boolean;
  /** Whose connection decides about its life: for so long after that breaks off; null: nobody's. */
  graceMs: number | null;
  /** Bytes of its input that came, written or not. */
  stdinBytes: number;
  /** Everything that is done with its input, in order. */
  input: Promise<void>;
  /** The number of the present reader: those before it have no say any more. */
  reader: number;
  /** It has ended by itself: what it left running inside is nobody's to end. */
  hasEnded?: boolean;
  /** Takes it from the present reader. */
  supersede: (() => void) | null;
  /** Until nobody comes back. */
  graceTimer: NodeJS.Timeout | null;
  /** The next piece of output; asking again before it is there gives the same. Null: after the last. */
  next(): Promise<OutputChunk | null>;
  /**
   * What was sent already, from these offsets on. Throws `gone` for what is not kept any more, `invalid` for what was
   * never sent.
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
  const sent: OutputChunk[] = [];
  let sentBytes = 0;
  /** Where each stream begins as far as it is kept, and where it ends; null before its first byte. */
  const ends: Record<OutputStream, number | null> = { stdout: null, stderr: null };
  const starts: Record<OutputStream, number | null> = { stdout: null, stderr: null };
  let pending: Promise<OutputChunk | null> | null = null;
  const keep = (chunk: OutputChunk) => {
    starts[chunk.stream] ??= chunk.offset;
    ends[chunk.stream] = chunk.offset + chunk.data.length;
    sent.push(chunk);
    sentBytes += chunk.data.length;
    while (sentBytes - (sent[0]?.data.length ?? 0) >= RETAINED_BYTES_MAX) {
      const dropped = sent.shift() as OutputChunk;
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
      const asked: Record<OutputStream, number | undefined> = { stdout: stdoutOffset, stderr: stderrOffset };
      for (const stream of ["stdout", "stderr"] as const) checkOffset(asked[stream], { stream, start: starts[stream], end: ends[stream] });
      return sent.flatMap((chunk) => {
        const from = Math.max(0, (asked[chunk.stream] ?? 0) - chunk.offset);
        if (from >= chunk.data.length) return [];
        return [{ ...chunk, offset: chunk.offset + from, data: chunk.data.subarray(from) }];
      });
    },
  };
}

function checkOffset(
  asked: number | undefined,
  { stream, start, end }: { stream: OutputStream; start: number | null; end: number | null },
): void {
  if (asked === undefined || start === null || end === null) return;
  if (asked < start) throw new CaissonError("gone", `what was written to ${stream} before ${start} is not kept any more`);
  if (asked > end) throw new CaissonError("invalid", `${asked} is past what was written to ${stream}`);
}
