import { write } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { WriteStream } from "node:tty";

/** One of our own output streams: binary-clean, in order, and slow readers slow the writer down. */
export interface Output {
  readonly isTerminal: boolean;
  readonly fd: number;
  /** Resolves once the bytes are with the reader. Never rejects: a reader who went away sets `broken`. */
  write(data: string | Uint8Array): Promise<void>;
  /** Resolves when the reader went away. */
  readonly broken: Promise<void>;
  /** Of the terminal; 80 × 24 for anything else. */
  size(): { cols: number; rows: number };
  /** Calls back when the terminal's size changes; gives what ends that. */
  onResize(listener: () => void): () => void;
  /** Whether bytes are on their way to a reader who does not take them. */
  pending(): boolean;
}

/** How long to wait when somebody made the descriptor non-blocking and its reader is slow. */
const FULL_PIPE_WAIT_MS = 5;

/**
 * Writes in a thread of the pool: `process.stdout` blocks the event loop on a full pipe, and with it our own handling of
 * signals and of the guest.
 */
export function createOutput(options: { fd: number; terminal: WriteStream | null }): Output {
  const { fd, terminal } = options;
  let last = Promise.resolve();
  let waiting = 0;
  let isBroken = false;
  const { promise: broken, resolve: markBroken } = Promise.withResolvers<void>();

  async function writeAll(bytes: Uint8Array): Promise<void> {
    let offset = 0;
    while (offset < bytes.length && !isBroken) {
      const outcome = await writeSome(fd, bytes, offset);
      if (typeof outcome === "number") offset += outcome;
      else if (outcome === "EAGAIN") await sleep(FULL_PIPE_WAIT_MS);
      else {
        isBroken = true;
        markBroken();
      }
    }
  }

  return {
    fd,
    isTerminal: terminal !== null,
    broken,
    pending: () => waiting > 0,
    size() {
      const [cols, rows] = terminal?.getWindowSize() ?? [80, 24];
      // A terminal that does not know its size says 0.
      return { cols: cols || 80, rows: rows || 24 };
    },
    onResize(listener) {
      terminal?.on("resize", listener);
      return () => void terminal?.off("resize", listener);
    },
    write(data) {
      const bytes = typeof data === "string" ? Buffer.from(data) : data;
      waiting++;
      last = last.then(() => writeAll(bytes)).finally(() => waiting--);
      return last;
    },
  };
}

function writeSome(fd: number, bytes: Uint8Array, offset: number): Promise<number | string> {
  return new Promise((resolve) => {
    write(fd, bytes, offset, bytes.length - offset, null, (error, written) => resolve(error === null ? written : (error.code ?? "EIO")));
  });
}
