import type { RemoteProcess } from "../../../../../src/client/process-stream.ts";
import type { StreamCalls } from "../../../../../src/client/stream-calls.ts";
import { CaissonError } from "../../../../../src/contract/error/error.ts";
import type { Ended } from "../../../../../src/contract/outcome.ts";
import { ignore } from "../../../../../src/lib/failures.ts";

/** Not every image has bash. */
const anyShell = "command -v bash >/dev/null 2>&1 && exec bash -i; exec sh -i";
const AGAIN_MS = 1_000;
/** The bound for input typed while disconnected; the rest is dropped. */
const TYPED_BYTES_MAX = 64 * 1024;

export interface TerminalSize {
  cols: number;
  rows: number;
}

/** `taken`: another page shows the shell now. `away`: the station is unreachable, and the shell reconnects. */
export type ShellState =
  | { kind: "opening" }
  | { kind: "open" }
  | { kind: "away" }
  | { kind: "taken" }
  | { kind: "ended"; ended: Ended }
  | { kind: "failed"; error: unknown };

export interface ShellOptions {
  sandbox: string;
  /** The name of the process inside. The same name attaches to the same process. */
  ref: string;
  /** Whether to start the process if it does not run. */
  isNew: boolean;
  size: TerminalSize;
  /** `isPast`: stored output, so no program waits for the terminal's reply to it. */
  onOutput(data: Uint8Array, details: { isPast: boolean }): void;
  onState(state: ShellState): void;
  /** Replaces the pause between attempts in tests. */
  pause?(ms: number): Promise<void>;
}

export interface Shell {
  write(data: Uint8Array): void;
  resize(size: TerminalSize): void;
  /** Stops listening; the shell continues. */
  leave(): void;
  end(): Promise<void>;
}

/**
 * Opens a shell whose output arrives once and in order, even over broken connections: it continues inside without a
 * listener, and we resume at the last offset.
 */
export function openShell(streams: Pick<StreamCalls, "openProcess" | "attachProcess">, options: ShellOptions): Shell {
  const { sandbox, ref, onState, pause = wait } = options;
  const receiver = createHeard(options.onOutput);
  let size = options.size;
  let process: RemoteProcess | null = null;
  let isLeft = false;
  let isThere = !options.isNew;
  const typed: Uint8Array[] = [];
  const leaving = new AbortController();
  const signal = leaving.signal;
  const connect = async (isFirst: boolean): Promise<RemoteProcess> => {
    if (!isThere) {
      // If the shell was started but the response was lost, the same call attaches to it.
      const start = { argv: ["/bin/sh", "-c", anyShell], env: { TERM: "xterm-256color" }, pty: size, ref, keepLastOutput: true };
      return streams.openProcess(sandbox, start, { signal });
    }
    if (isFirst) {
      const past = await streams.attachProcess(sandbox, ref, { follow: false }, { signal });
      for await (const frame of past.output) receiver.take(frame, { isPast: true });
    }
    return streams.attachProcess(sandbox, ref, { stdoutOffset: receiver.end() }, { signal }).catch((error: unknown) => {
      if (!(error instanceof CaissonError) || error.code !== "gone") throw error;
      // Some output is no longer stored. Continues with the rest.
      return streams.attachProcess(sandbox, ref, {}, { signal });
    });
  };
  const endedOrAway = "the loop shows that the process ended or is away";
  const listen = async () => {
    onState({ kind: "opening" });
    for (let isFirst = true; !isLeft; isFirst = false) {
      try {
        process = await connect(isFirst);
        isThere = true;
        if (isLeft) return process.detach();
        onState({ kind: "open" });
        void ignore(process.resize(size), endedOrAway);
        for (const data of typed.splice(0)) void ignore(process.write(data), endedOrAway);
        for await (const frame of process.output) receiver.take(frame, { isPast: false });
        const ended = await process.ended;
        // Nothing can be sent to an ended process.
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
      if (process !== null) return void ignore(process.write(data), endedOrAway);
      const waiting = typed.reduce((length, each) => length + each.length, 0);
      if (waiting + data.length <= TYPED_BYTES_MAX) typed.push(data);
    },
    resize(next) {
      size = next;
      if (process !== null) void ignore(process.resize(next), endedOrAway);
    },
    leave() {
      isLeft = true;
      // Detaches from an open shell, and aborts one that is still opening.
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

/** Passes on new output only: no byte twice, wherever a connection starts. */
function createHeard(onOutput: ShellOptions["onOutput"]) {
  let end = 0;
  return {
    end: () => end,
    take({ offset, data }: { offset: number; data: Uint8Array }, details: { isPast: boolean }): void {
      const known = Math.max(0, end - offset);
      if (known >= data.length) return;
      end = offset + data.length;
      onOutput(known === 0 ? data : data.subarray(known), details);
    },
  };
}

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
