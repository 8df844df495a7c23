import { INPUT_WINDOW_BYTES } from "../contract/api/stream-paths.ts";
import { CaissonError } from "../contract/error.ts";

const CHUNK_BYTES_MAX = 64 * 1024;

/** Bytes on their way to the station, of which no more than the window are sent before it has taken them. */
export interface PacedInput {
  /** Resolves when the station has taken all of it. */
  write(data: Uint8Array): Promise<void>;
  /** Sends over this socket from now on. `takenBefore`: what the station has taken of all that was ever written. */
  connect(send: (chunk: Uint8Array) => void, takenBefore: number): void;
  /** Over the present socket, all together. */
  taken(bytes: number): void;
  disconnect(): void;
  /** What waits throws this, and what is written later does as well. */
  fail(error: CaissonError): void;
  /** Resolves when everything that was written is sent. */
  sent(): Promise<void>;
}

interface Waiting {
  /** Where it ends among all that was written. */
  end: number;
  resolve(): void;
  reject(error: unknown): void;
}

export function createPacedInput(): PacedInput {
  /** What was written and not taken, in order; positions count all that was ever written. */
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
      // A copy: the caller may use its bytes again before they are sent.
      const copy = data.slice();
      for (let at = 0; at < copy.length; at += CHUNK_BYTES_MAX) {
        const chunk = copy.subarray(at, at + CHUNK_BYTES_MAX);
        chunks.push({ start: written, data: chunk });
        written += chunk.length;
      }
      const taken = until(written);
      pump();
      await taken;
    },
    connect(how, takenBefore) {
      if (takenBefore < takenTo) {
        // Another station, or one that began anew: to say it again could be to do it twice.
        const isUnknown = sentTo > takenTo;
        socketStart = takenTo;
        if (isUnknown) fail(new CaissonError("unavailable", "nobody knows how much of the input was taken"));
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
    taken(bytes) {
      takenTo = Math.max(takenTo, Math.min(socketStart + bytes, sentTo));
      settle();
      pump();
    },
    disconnect() {
      send = null;
    },
    fail,
    sent: async () => {
      if (failure !== null) throw failure;
      if (written > takenTo) await until(written);
    },
  };
}
