import type { RemoteProcess } from "../../../../../src/client/process-stream.ts";
import type { StreamCalls } from "../../../../../src/client/stream-calls.ts";
import { CaissonError } from "../../../../../src/contract/error.ts";
import type { Ended } from "../../../../../src/contract/outcome.ts";

/** An image need not have bash. */
const anyShell = "command -v bash >/dev/null 2>&1 && exec bash -i; exec sh -i";
const AGAIN_MS = 1_000;
/** What is typed while there is no connection; what is beyond it is lost. */
const TYPED_BYTES_MAX = 64 * 1024;

export interface TerminalSize {
  cols: number;
  rows: number;
}

/** `taken`: it is shown somewhere else now. `away`: the station is; it is taken up again. */
export type ShellState =
  | { kind: "opening" }
  | { kind: "open" }
  | { kind: "away" }
  | { kind: "taken" }
  | { kind: "ended"; ended: Ended }
  | { kind: "failed"; error: unknown };

export interface ShellOptions {
  sandbox: string;
  /** What the process is called inside: the same one again takes it up. */
  ref: string;
  /** Whether it is to be started if it does not run. */
  isNew: boolean;
  size: TerminalSize;
  /** `isPast`: it was written before now, and nobody waits for an answer to it. */
  onOutput(data: Uint8Array, given: { isPast: boolean }): void;
  onState(state: ShellState): void;
  /** Another pause between attempts, for tests. */
  pause?(ms: number): Promise<void>;
}

export interface Shell {
  write(data: Uint8Array): void;
  resize(size: TerminalSize): void;
  /** Stops listening; the shell goes on. */
  leave(): void;
  end(): Promise<void>;
}

/**
 * A shell whose output is told once and in order, whatever becomes of connections: it goes on inside while nobody
 * listens, and is taken up where it was heard last.
 */
export function openShell(streams: Pick<StreamCalls, "openProcess" | "attachProcess">, options: ShellOptions): Shell {
  const { sandbox, ref, onState, pause = wait } = options;
  const heard = createHeard(options.onOutput);
  let size = options.size;
  let process: RemoteProcess | null = null;
  let isLeft = false;
  let isThere = !options.isNew;
  const typed: Uint8Array[] = [];
  const leaving = new AbortController();
  const signal = leaving.signal;
  const connect = async (isFirst: boolean): Promise<RemoteProcess> => {
    if (!isThere) {
      // One that was started while the answer was lost is taken up by the same call.
      const start = { argv: ["/bin/sh", "-c", anyShell], env: { TERM: "xterm-256color" }, pty: size, ref, keepLastOutput: true };
      return streams.openProcess(sandbox, start, { signal });
    }
    if (isFirst) {
      const past = await streams.attachProcess(sandbox, ref, { follow: false }, { signal });
      for await (const frame of past.output) heard.take(frame, { isPast: true });
    }
    return streams.attachProcess(sandbox, ref, { stdoutOffset: heard.end() }, { signal }).catch((error: unknown) => {
      if (!(error instanceof CaissonError) || error.code !== "gone") throw error;
      // More was written than is kept: what is left of it.
      return streams.attachProcess(sandbox, ref, {}, { signal });
    });
  };
  const listen = async () => {
    onState({ kind: "opening" });
    for (let isFirst = true; !isLeft; isFirst = false) {
      try {
        process = await connect(isFirst);
        isThere = true;
        if (isLeft) return process.detach();
        onState({ kind: "open" });
        void process.resize(size).catch(() => {});
        for (const data of typed.splice(0)) void process.write(data).catch(() => {});
        for await (const frame of process.output) heard.take(frame, { isPast: false });
        const ended = await process.ended;
        // There is nothing left to say to it.
        process = null;
        if (isLeft) return;
        return onState({ kind: "ended", ended });
      } catch (error) {
        process = null;
        if (isLeft) return;
        const code = error instanceof CaissonError ? error.code : null;
        if (code === "superseded") return onState({ kind: "taken" });
        if (code !== "unavailable" && code !== "lost" && code !== "busy") return onState({ kind: "failed", error });
        onState({ kind: "away" });
        await pause(AGAIN_MS);
      }
    }
  };
  void listen();
  return {
    write(data) {
      if (process !== null) return void process.write(data).catch(() => {});
      const waiting = typed.reduce((length, each) => length + each.length, 0);
      if (waiting + data.length <= TYPED_BYTES_MAX) typed.push(data);
    },
    resize(next) {
      size = next;
      void process?.resize(next).catch(() => {});
    },
    leave() {
      isLeft = true;
      // One that is open is told; what is still being opened is given up.
      if (process === null) leaving.abort();
      else process.detach();
    },
    async end() {
      isLeft = true;
      await process?.kill();
      leaving.abort();
    },
  };
}

/** Passes on what was not heard before: no byte twice, wherever a connection begins. */
function createHeard(onOutput: ShellOptions["onOutput"]) {
  let end = 0;
  return {
    end: () => end,
    take({ offset, data }: { offset: number; data: Uint8Array }, given: { isPast: boolean }): void {
      const known = Math.max(0, end - offset);
      if (known >= data.length) return;
      end = offset + data.length;
      onOutput(known === 0 ? data : data.subarray(known), given);
    },
  };
}

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
