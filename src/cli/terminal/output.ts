import { write, writeSync } from "node:fs";
import type { Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { WriteStream } from "node:tty";
import { Line } from "./line.ts";
import { visibleJson } from "./plain-text.ts";

/**
 * An output stream that keeps the order and slows a writer down to the speed of the reader. Every writing method
 * resolves when the reader has the bytes, and never rejects: `broken` resolves if the reader disconnects. No method
 * takes a string: people get lines and programs get values, so that no command can pass on control sequences.
 */
export interface Output {
  readonly isTerminal: boolean;
  readonly fd: number;
  print(lines: Line | readonly Line[]): Promise<void>;
  /** Prints a line without a line break, for a user to type an answer. */
  prompt(line: Line): Promise<void>;
  /** Prints a value as one line of JSON, or with `indent` for people. */
  printJson(value: unknown, options?: { indent: number }): Promise<void>;
  /**
   * Redraws rows below the printed lines: removes the `above` rows from the first one to the cursor's, and everything
   * below; prints `lines`; draws `rows`; and puts the cursor at its place in them, or at their end. For terminals.
   */
  repaint(picture: Picture): Promise<void>;
  /** Clears the screen and moves the cursor to its top. For terminals. */
  clear(): Promise<void>;
  /**
   * Passes printed lines to `to`, which draws rows below them; null ends this. JSON and bytes are not for people, so
   * they still go to the stream.
   */
  divert(to: ((lines: readonly Line[]) => Promise<void>) | null): void;
  /** Lets the terminal mark pasted text, until disposed or the end of this process. */
  bracketPastes(): Disposable;
  /**
   * Writes bytes unchanged: those of a program that the user connected to this stream, and those of files for our
   * pipe's reader.
   */
  writeRaw(bytes: Uint8Array): Promise<void>;
  /** Returns an output to the same terminal through another program, such as a pager. */
  through(reader: Writable): Output;
  /** Resolves when the reader has disconnected. */
  readonly broken: Promise<void>;
  /** The terminal's size; 80 × 24 for anything else. */
  size(): { cols: number; rows: number };
  /** Calls back when the terminal's size changes. Returns a function that ends this. */
  onResize(listener: () => void): () => void;
  /** Whether bytes are waiting for the reader. */
  pending(): boolean;
  /** Resolves when the reader has everything written so far, or has disconnected. */
  written(): Promise<void>;
  /**
   * Resolves when few bytes are waiting. A writer of many small pieces awaits this instead of each piece, so that many
   * are written at once.
   */
  room(): Promise<void>;
}

export interface Picture {
  above: number;
  lines: readonly Line[];
  rows: readonly Line[];
  cursor?: { row: number; column: number };
}

/** How long to wait if the descriptor is non-blocking and its reader is slow. */
const FULL_PIPE_WAIT_MS = 5;
/** How many bytes may wait before a writer that asks for room has to wait. */
const AHEAD_BYTES_MAX = 256 * 1024;

/** How long an interrupted command waits for the readers of its output. */
const LAST_WRITE_MS = 200;

/**
 * Returns whether all output has reached its readers. Node learns that a write is over a moment after its reader has
 * the bytes.
 */
export async function waitUntilWritten(outputs: readonly Pick<Output, "pending" | "written">[]): Promise<boolean> {
  await Promise.race([Promise.all(outputs.map((output) => output.written())), sleep(LAST_WRITE_MS)]);
  return outputs.every((output) => !output.pending());
}

/**
 * Writes in a pool thread: `process.stdout` blocks the event loop on a full pipe, and with it our handling of signals
 * and of the guest.
 */
export function createOutput(options: {
  fd: number;
  terminal: WriteStream | null;
  colours?: boolean;
  /** Receives the bytes instead of the descriptor. */
  reader?: Writable;
}): Output {
  const { fd, terminal, reader } = options;
  const colours = terminal !== null && options.colours !== false;
  let last = Promise.resolve();
  let aheadBytes = 0;
  /** Pieces to write together when everything before them is written. */
  let gathered: { parts: Uint8Array[]; written: Promise<void> } | null = null;
  let isBroken = false;
  const { promise: broken, resolve: markBroken } = Promise.withResolvers<void>();

  async function writeAll(bytes: Uint8Array): Promise<void> {
    if (reader !== undefined) return writeTo(reader, bytes);
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

  async function writeTo(stream: Writable, bytes: Uint8Array): Promise<void> {
    if (isBroken) return;
    const error = await new Promise((resolve) => stream.write(bytes, resolve));
    if (!error) return;
    isBroken = true;
    markBroken();
  }

  const gather = (): { parts: Uint8Array[]; written: Promise<void> } => {
    const parts: Uint8Array[] = [];
    const written = last.then(async () => {
      gathered = null;
      const bytes = Buffer.concat(parts);
      await writeAll(bytes);
      aheadBytes -= bytes.length;
    });
    last = written;
    return { parts, written };
  };
  const writeRaw = (bytes: Uint8Array): Promise<void> => {
    gathered ??= gather();
    gathered.parts.push(bytes);
    aheadBytes += bytes.length;
    return gathered.written;
  };
  const render = (line: Line) => (colours ? line.styled : line.text);
  const renderLines = (lines: readonly Line[]) => lines.map((line) => `${render(line)}\n`).join("");
  const write = (text: string) => writeRaw(Buffer.from(text));
  let diverted: ((lines: readonly Line[]) => Promise<void>) | null = null;

  return {
    fd,
    print(content) {
      const lines = content instanceof Line ? [content] : content;
      if (lines.length === 0) return Promise.resolve();
      return diverted === null ? write(renderLines(lines)) : diverted(lines);
    },
    prompt: (line) => write(render(line)),
    printJson: (value, json) => write(`${visibleJson(value, json?.indent)}\n`),
    repaint: ({ above, lines, rows, cursor }) =>
      write(
        `${takeAway(above)}${renderLines(lines)}${rows.map(render).join("\n")}${cursor === undefined ? "" : moveTo(cursor, rows.length)}`,
      ),
    clear: () => write("\x1b[H\x1b[2J"),
    divert(to) {
      diverted = to;
    },
    bracketPastes() {
      const end = () => void writeSync(fd, "\x1b[?2004l");
      process.once("exit", end);
      void write("\x1b[?2004h");
      return {
        [Symbol.dispose]() {
          process.off("exit", end);
          void write("\x1b[?2004l");
        },
      };
    },
    writeRaw,
    through: (stream) => createOutput({ ...options, reader: stream }),
    isTerminal: terminal !== null,
    broken,
    pending: () => aheadBytes > 0,
    written: () => last,
    room: () => (aheadBytes <= AHEAD_BYTES_MAX ? Promise.resolve() : last),
    size() {
      const [cols, rows] = terminal?.getWindowSize() ?? [80, 24];
      // A terminal that does not know its size reports 0.
      return { cols: cols || 80, rows: rows || 24 };
    },
    onResize(listener) {
      terminal?.on("resize", listener);
      return () => void terminal?.off("resize", listener);
    },
  };
}

function takeAway(rows: number): string {
  if (rows === 0) return "";
  return `\r${rows > 1 ? `\x1b[${rows - 1}A` : ""}\x1b[J`;
}

/** Moves the cursor to its place from the end of the last row. */
function moveTo(cursor: { row: number; column: number }, rows: number): string {
  const up = rows - 1 - cursor.row;
  return `\r${up > 0 ? `\x1b[${up}A` : ""}${cursor.column > 0 ? `\x1b[${cursor.column}C` : ""}`;
}

function writeSome(fd: number, bytes: Uint8Array, offset: number): Promise<number | string> {
  return new Promise((resolve) => {
    write(fd, bytes, offset, bytes.length - offset, null, (error, written) => resolve(error === null ? written : (error.code ?? "EIO")));
  });
}
