const NEWLINE = 0x0a;
const RETURN = 0x0d;

/** One event of a stream: its original bytes, and its data, or null if it has none or was too long to keep. */
export interface SseEvent {
  raw: Buffer;
  data: string | null;
}

export interface SseSplitter {
  /** Returns the events that this chunk completed. */
  push(chunk: Buffer): SseEvent[];
  /** Returns the rest at the end: an event that was never completed. */
  rest(): Buffer;
}

/**
 * Splits a stream of server-sent events at its blank lines. No byte is lost or changed. An event above the limit is
 * returned in pieces, without data.
 */
export function createSseSplitter(options: { eventBytesMax: number }): SseSplitter {
  let pieces: Buffer[] = [];
  let size = 0;
  let tooLong = false;
  /** The length of the line that the last chunk left unfinished. */
  let lineBytes = 0;
  let lastByte = 0;

  const take = (piece: Buffer): Buffer => {
    const raw = pieces.length === 0 ? piece : Buffer.concat([...pieces, piece]);
    pieces = [];
    size = 0;
    return raw;
  };
  return {
    push(chunk) {
      const events: SseEvent[] = [];
      let start = 0;
      let lineStart = 0;
      for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, lineStart)) {
        const length = lineBytes + at - lineStart;
        const before = at > 0 ? chunk[at - 1] : lastByte;
        lineBytes = 0;
        lineStart = at + 1;
        if (length > 1 || (length === 1 && before !== RETURN)) continue;
        const raw = take(chunk.subarray(start, lineStart));
        events.push({ raw, data: tooLong ? null : dataOf(raw) });
        tooLong = false;
        start = lineStart;
      }
      lineBytes += chunk.length - lineStart;
      lastByte = chunk.at(-1) ?? lastByte;
      if (start < chunk.length) {
        pieces.push(chunk.subarray(start));
        size += chunk.length - start;
      }
      if (size > options.eventBytesMax || (tooLong && size > 0)) {
        tooLong = true;
        events.push({ raw: take(Buffer.alloc(0)), data: null });
      }
      return events;
    },
    rest: () => take(Buffer.alloc(0)),
  };
}

function dataOf(raw: Buffer): string | null {
  const lines = raw
    .toString("utf8")
    .split("\n")
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(line.startsWith("data: ") ? 6 : 5).replace(/\r$/, ""));
  return lines.length === 0 ? null : lines.join("\n");
}
