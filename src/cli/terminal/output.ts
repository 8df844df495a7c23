import { write, writeSync } from "node:fs";
import type { Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { WriteStream } from "node:tty";
import { Line } from "./line.ts";
import { visibleJson } from "./plain-text.ts";

/**
 * One of our own output streams: in order, and slow readers slow the writer down. Every writing method resolves once
 * the bytes are with the reader, and never rejects: a reader who went away sets `broken`. None takes a string: what
 * people see is made of lines, what programs read of values, so that no command can pass on what a terminal would obey.
 */
export interface Output {
  readonly isTerminal: boolean;
  readonly fd: number;
  print(lines: Line | readonly Line[]): Promise<void>;
  /** Without a line break at its end: somebody is to type an answer. */
  prompt(line: Line): Promise<void>;
  /** One value as a line of JSON; with `indent`, for people. */
  printJson(value: unknown, options?: { indent: number }): Promise<void>;
  /**
   * Rows below everything that is printed: takes away the `above` ones that are there, counted to the one with the
   * cursor, and what is below them, prints `lines`, draws `rows`, and puts the cursor where it is wanted among these,
   * or at their end. For terminals.
   */
  repaint(picture: Picture): Promise<void>;
  /** An empty screen, with the cursor at its top. For terminals. */
  clear(): Promise<void>;
  /**
   * Whoever has rows below takes what is to be printed, and prints it above them; null gives that back. JSON and bytes
   * are not for people, and go where they always go.
   */
  divert(to: ((lines: readonly Line[]) => Promise<void>) | null): void;
  /** Asks the terminal to mark what is pasted, until the disposal or the end of this process. */
  bracketPastes(): Disposable;
  /**
   * Bytes as they are: of a program that the user connected to this stream, and of files for whoever reads our pipe.
   */
  writeRaw(bytes: Uint8Array): Promise<void>;
  /** The same terminal, shown by another program that reads what is written: a pager. */
  through(reader: Writable): Output;
  /** Resolves when the reader went away. */
  readonly broken: Promise<void>;
  /** Of the terminal; 80 × 24 for anything else. */
  size(): { cols: number; rows: number };
  /** Calls back when the terminal's size changes; gives what ends that. */
  onResize(listener: () => void): () => void;
  /** Whether bytes are on their way to a reader who does not take them. */
  pending(): boolean;
  /**
   * Resolves once few bytes wait. A writer of many small pieces waits for this instead of for each piece;
   * then many are written at once.
   */
  room(): Promise<void>;
}

export interface Picture {
  above: number;
  lines: readonly Line[];
  rows: readonly Line[];
  cursor?: { row: number; column: number };
}

/** How long to wait when somebody made the descriptor non-blocking and its reader is slow. */
const FULL_PIPE_WAIT_MS = 5;
/** How much may wait to be written before a writer who asks for room has to wait. */
const AHEAD_BYTES_MAX = 256 * 1024;

/**
 * Writes in a thread of the pool: `process.stdout` blocks the event loop on a full pipe, and with it our own handling
 * of signals and of the guest.
 */
export function createOutput(options: {
  fd: number;
  terminal: WriteStream | null;
  colours?: boolean;
  /** Takes what would go to the descriptor. */
  reader?: Writable;
}): Output {
  const { fd, terminal, reader } = options;
  const colours = terminal !== null && options.colours !== false;
  let last = Promise.resolve();
  let aheadBytes = 0;
  /** What is written together once everything before it is. */
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
  const rendered = (line: Line) => (colours ? line.styled : line.text);
  const ended = (lines: readonly Line[]) => lines.map((line) => `${rendered(line)}\n`).join("");
  const write = (text: string) => writeRaw(Buffer.from(text));
  let diverted: ((lines: readonly Line[]) => Promise<void>) | null = null;

  return {
    fd,
    print(given) {
      const lines = given instanceof Line ? [given] : given;
      if (lines.length === 0) return Promise.resolve();
      return diverted === null ? write(ended(lines)) : diverted(lines);
    },
    prompt: (line) => write(rendered(line)),
    printJson: (value, json) => write(`${visibleJson(value, json?.indent)}\n`),
    repaint: ({ above, lines, rows, cursor }) =>
      write(`${takeAway(above)}${ended(lines)}${rows.map(rendered).join("\n")}${cursor === undefined ? "" : moveTo(cursor, rows.length)}`),
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
    room: () => (aheadBytes <= AHEAD_BYTES_MAX ? Promise.resolve() : last),
    size() {
      const [cols, rows] = terminal?.getWindowSize() ?? [80, 24];
      // A terminal that does not know its size says 0.
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

/** From the end of the last of so many rows. */
function moveTo(cursor: { row: number; column: number }, rows: number): string {
  const up = rows - 1 - cursor.row;
  return `\r${up > 0 ? `\x1b[${up}A` : ""}${cursor.column > 0 ? `\x1b[${cursor.column}C` : ""}`;
}

function writeSome(fd: number, bytes: Uint8Array, offset: number): Promise<number | string> {
  return new Promise((resolve) => {
    write(fd, bytes, offset, bytes.length - offset, null, (error, written) => resolve(error === null ? written : (error.code ?? "EIO")));
  });
}
