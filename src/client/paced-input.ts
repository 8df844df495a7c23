import { INPUT_WINDOW_BYTES } from "../contract/api/stream-paths.ts";
import { CaissonError } from "../contract/error/error.ts";

const CHUNK_BYTES_MAX = 64 * 1024;

/** Input for a process, sent with flow control: at most one window is in flight before the station acknowledges it. */
export interface PacedInput {
  /** Resolves when the station has acknowledged all of it. */
  write(data: Uint8Array): Promise<void>;
  /** Sends over this socket from now on. `takenBefore` is how much of all input the station has already received. */
  connect(send: (chunk: Uint8Array) => void, takenBefore: number): void;
  /** Acknowledges the total received over the current socket. */
  acknowledge(bytes: number): void;
  disconnect(): void;
  /** Fails all pending and later writes with this error. */
  fail(error: CaissonError): void;
  /** Resolves when all input is acknowledged. */
  flush(): Promise<void>;
}

interface Waiting {
  /** The end of the write within all input. */
  end: number;
  resolve(): void;
  reject(error: unknown): void;
}

export function createPacedInput(): PacedInput {
  /** Input that is not acknowledged, in order; positions count all input. */
  let chunks: { start: number; data: Uint8Array }[] = [];
  let written = 0;
  let sentTo = 0;
  let takenTo = 0;
  let socketStart = 0;
  let send: ((chunk: Uint8Array) => void) | null = null;
  let failure: CaissonError | null = null;
  let waiting: Waiting[] = [];
  const settle = () => {
    chunks = chunks.filter(({ start, data }) => start + data.length > takenTo);
    const done = waiting.filter(({ end }) => end <= takenTo);
    waiting = waiting.filter(({ end }) => end > takenTo);
    for (const each of done) each.resolve();
  };
  const pump = () => {
    for (const { start, data } of chunks) {
      if (send === null || start + data.length - takenTo > INPUT_WINDOW_BYTES) return;
      if (start < sentTo) continue;
      sentTo = start + data.length;
      send(data);
    }
  };
  const fail = (error: CaissonError) => {
    failure ??= error;
    chunks = [];
    for (const { reject } of waiting.splice(0)) reject(failure);
  };
  const until = (end: number) => new Promise<void>((resolve, reject) => waiting.push({ end, resolve, reject }));
  return {
    async write(data) {
      if (failure !== null) throw failure;
      if (data.length === 0) return;
      // Copies the data: the caller may reuse its buffer before it is sent.
      const copy = data.slice();
      for (let at = 0; at < copy.length; at += CHUNK_BYTES_MAX) {
        const chunk = copy.subarray(at, at + CHUNK_BYTES_MAX);
        chunks.push({ start: written, data: chunk });
        written += chunk.length;
      }
      const acknowledged = until(written);
      pump();
      await acknowledged;
    },
    connect(how, takenBefore) {
      if (takenBefore < takenTo) {
        // Another or a restarted station: resending could deliver the input twice.
        const isUnknown = sentTo > takenTo;
        socketStart = takenTo;
        if (isUnknown) fail(new CaissonError("unavailable", "it is unknown how much of the input the station received"));
      } else {
        takenTo = Math.min(takenBefore, written);
        sentTo = takenTo;
        socketStart = takenTo;
        chunks = chunks.flatMap(({ start, data }) =>
          start + data.length <= takenTo ? [] : [{ start: Math.max(start, takenTo), data: data.subarray(Math.max(0, takenTo - start)) }],
        );
      }
      send = how;
      settle();
      pump();
    },
    acknowledge(bytes) {
      takenTo = Math.max(takenTo, Math.min(socketStart + bytes, sentTo));
      settle();
      pump();
    },
    disconnect() {
      send = null;
    },
    fail,
    flush: async () => {
      if (failure !== null) throw failure;
      if (written > takenTo) await until(written);
    },
  };
}
