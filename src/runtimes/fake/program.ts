import type { Duplex } from "node:stream";
import type { FakeProcess } from "./fake-process.ts";
import type { MemoryFiles } from "./memory-files.ts";

/**
 * The calls that a program in memory can make. A promise that rejects with `cancelled` means that the process was
 * ended; do not catch it.
 */
export interface ProgramIo {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly uid: number;
  readonly pid: number;
  readonly files: MemoryFiles;
  /** The current size of the terminal, or null without one. */
  readonly terminal: { cols: number; rows: number } | null;
  /** Resolves as soon as there is room for the data (back-pressure). */
  stdout(data: Uint8Array | string): Promise<void>;
  stderr(data: Uint8Array | string): Promise<void>;
  /** Resolves to null at the end of the input. */
  read(): Promise<Uint8Array | null>;
  sleep(ms: number): Promise<void>;
  /** Replaces the default, which is to end the process. `SIGKILL` cannot be caught. */
  onSignal(name: NodeJS.Signals, handler: () => void): void;
  /** Sends a signal to the process itself. */
  signal(number: number): void;
  exit(code: number): never;
  /** Starts a separate process in the same tree. */
  start(argv: readonly string[], options?: { stdin?: boolean }): FakeProcess;
  /** Runs another program as a part of this one, with different streams if wanted. Throws as `spawn` does. */
  run(argv: readonly string[], io: ProgramIo): number | undefined | Promise<number | undefined>;
  /** Listens on a free port, and returns its number. */
  listen(onConnection: (connection: Duplex) => void): number;
  /** Connects to a port that a program or the host serves. Returns null if nothing listens there. */
  connect(port: number): Duplex | null;
}

/** Returns the exit code, or undefined for 0. An error that it throws is printed to stderr, and the exit code is 1. */
export type Program = (io: ProgramIo) => number | undefined | Promise<number | undefined>;

/** Resolves an argument to a path of the machine. */
export function pathOf(io: ProgramIo, argument: string): string {
  return argument.startsWith("/") ? argument : `${io.cwd}/${argument}`;
}

/** The programs that every fake sandbox has. */
export const basicPrograms: Readonly<Record<string, Program>> = {
  true: () => 0,
  false: () => 1,
  echo: async (io) => {
    const [first, ...rest] = io.argv.slice(1);
    const words = first === "-n" ? rest : io.argv.slice(1);
    await io.stdout(words.join(" ") + (first === "-n" ? "" : "\n"));
    return 0;
  },
  printf: async (io) => {
    const [format = "", ...values] = io.argv.slice(1);
    let next = 0;
    const text = format.replace(/%s|%d|%%|\\n|\\t/g, (token) => {
      if (token === "\\n") return "\n";
      if (token === "\\t") return "\t";
      return token === "%%" ? "%" : (values[next++] ?? "");
    });
    await io.stdout(text);
    return 0;
  },
  cat: async (io) => {
    const paths = io.argv.slice(1).filter((argument) => argument !== "--");
    if (paths.length === 0) for (let data = await io.read(); data !== null; data = await io.read()) await io.stdout(data);
    for (const path of paths) await io.stdout(io.files.read(pathOf(io, path), io.uid));
    return 0;
  },
  sleep: async (io) => {
    await io.sleep(Number(io.argv[1] ?? "0") * 1000);
    return 0;
  },
  env: async (io) => {
    for (const [name, value] of Object.entries(io.env)) await io.stdout(`${name}=${value}\n`);
    return 0;
  },
  printenv: async (io) => {
    const value = io.env[io.argv[1] ?? ""];
    if (value === undefined) return 1;
    await io.stdout(`${value}\n`);
    return 0;
  },
  pwd: async (io) => {
    await io.stdout(`${io.cwd}\n`);
    return 0;
  },
  ls: async (io) => {
    const path = pathOf(io, io.argv.slice(1).find((argument) => !argument.startsWith("-")) ?? ".");
    const names = io.files.list(path, { depth: 1, entriesMax: 10_000 }).entries.map(({ name }) => name);
    for (const name of names.sort()) await io.stdout(`${name}\n`);
    return 0;
  },
  id: async (io) => {
    await io.stdout(`${io.uid}\n`);
    return 0;
  },
};
