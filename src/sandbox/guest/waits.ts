import { CaissonError } from "../../contract/error/error.ts";
import { ignore, succeeds } from "../../lib/failures.ts";

/** The state of a guest as the host sees it, without asking the guest. */
export type GuestCondition = "running" | "frozen" | "stopped" | "dead" | "unknown";

/** The minimum progress: in each window, this many bytes must move. */
export interface Bound {
  windowMs: number;
  bytesMin: number;
}

/** For a single answer: a live guest may be removing a large tree on a slow disk. */
export const ANSWER_BOUND: Bound = { windowMs: 300_000, bytesMin: 1 };
/** For bytes in either direction and for listings: a guest below this rate is not slow but stalling. */
export const TRANSFER_BOUND: Bound = { windowMs: 60_000, bytesMin: 16_384 };
/** The guest sends a heartbeat every 5 s. If a request makes no progress for this long, we check on the guest. */
const QUIET_MS = 10_000;
export const PING_TIMEOUT_MS = 5_000;
const TICK_MS = 1_000;

/** One caller that waits for the guest on one stream. Time counts only during the guest's turn. */
export interface Wait {
  /** Records that bytes arrived or were accepted. */
  moved(bytes: number): void;
  /** Sets whether it is the guest's turn, which it is at first. */
  guestsTurn(is: boolean): void;
  /** Replaces the bound and restarts its window. */
  setBound(bound: Bound): void;
  end(): void;
}

interface OpenWait {
  what: string;
  stream: number;
  bound: Bound;
  running: boolean;
  /** The time in the current window. */
  waitedMs: number;
  bytes: number;
  quietMs: number;
  giveUp: (error: CaissonError) => void;
  end: () => void;
}

export interface WaitRequest {
  /** The attempted action, for messages. */
  what: string;
  stream: number;
  bound: Bound;
  signal?: AbortSignal | undefined;
  /** Called after the stream was cancelled. Never called after `end`. */
  onGivenUp: (error: CaissonError) => void;
}

/**
 * All waits for one guest. A wait ends with its answer, with `cancelled`, or with `timeout` and `details.guest`:
 * `stopped`, `frozen` or `silent` for a guest that does not answer at all, and `slow` for one that answers pings but
 * makes no progress on this request. A dead guest ends the connection. Time is counted in ticks, so a host that was
 * itself suspended does not blame the guest.
 */
export class Waits {
  readonly #open = new Set<OpenWait>();
  readonly #options: { ping: () => Promise<unknown>; cancel: (stream: number) => void; fail: (error: CaissonError) => void };
  /** How the host checks on the guest by itself; set by code that knows the wall. */
  condition: (() => Promise<GuestCondition>) | null = null;
  #ticking: NodeJS.Timeout | null = null;
  #looking = false;

  constructor(options: { ping: () => Promise<unknown>; cancel: (stream: number) => void; fail: (error: CaissonError) => void }) {
    this.#options = options;
  }

  /** Throws `cancelled` if the signal has already fired; then nothing is cancelled. */
  begin(request: WaitRequest): Wait {
    const { what, stream, bound, signal, onGivenUp } = request;
    const end = () => {
      this.#open.delete(wait);
      signal?.removeEventListener("abort", abort);
    };
    const giveUp = (error: CaissonError) => {
      if (!this.#open.has(wait)) return;
      end();
      this.#options.cancel(stream);
      onGivenUp(error);
    };
    const wait: OpenWait = { what, stream, bound, running: true, waitedMs: 0, bytes: 0, quietMs: 0, giveUp, end };
    const abort = () => giveUp(cancelledError(what));
    this.#open.add(wait);
    signal?.addEventListener("abort", abort, { once: true });
    this.#ticking ??= setInterval(() => this.#tick(), TICK_MS).unref();
    return {
      moved(bytes) {
        wait.bytes += bytes;
        wait.quietMs = 0;
      },
      guestsTurn(is) {
        wait.running = is;
      },
      setBound(next) {
        wait.bound = next;
        wait.waitedMs = 0;
        wait.bytes = 0;
      },
      end,
    };
  }

  stop(): void {
    if (this.#ticking !== null) clearInterval(this.#ticking);
    this.#ticking = null;
    for (const { end } of this.#open) end();
  }

  /**
   * Pings the guest and checks its condition. Returns null if it answers and is not frozen. Fails the connection if the
   * guest is dead.
   */
  async look(): Promise<Exclude<GuestCondition, "running"> | null> {
    const [condition, answers] = await Promise.all([
      this.condition === null ? "unknown" : conditionOrUnknown(this.condition()),
      succeeds(this.#options.ping(), "the check reports a guest that does not answer"),
    ]);
    if (condition === "dead") this.#options.fail(new CaissonError("lost", "the sandbox's guest is dead"));
    if (condition === "dead" || condition === "frozen") return condition;
    if (answers) return null;
    return condition === "stopped" ? "stopped" : "unknown";
  }

  #tick(): void {
    let isQuiet = false;
    for (const wait of [...this.#open]) {
      if (!wait.running) continue;
      wait.waitedMs += TICK_MS;
      wait.quietMs += TICK_MS;
      if (wait.waitedMs < wait.bound.windowMs) isQuiet ||= wait.quietMs >= QUIET_MS;
      else if (wait.bytes < wait.bound.bytesMin) wait.giveUp(silenceError(wait.what, "slow"));
      else {
        wait.waitedMs = 0;
        wait.bytes = 0;
      }
    }
    if (isQuiet) void this.#lookForAll();
    if (this.#open.size > 0 || this.#ticking === null) return;
    clearInterval(this.#ticking);
    this.#ticking = null;
  }

  async #lookForAll(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    const quiet = [...this.#open].filter(({ running, quietMs }) => running && quietMs >= QUIET_MS);
    const found = await this.look();
    this.#looking = false;
    for (const wait of quiet) {
      // Skip requests that made progress during the check.
      if (wait.quietMs < QUIET_MS) continue;
      if (found === null) wait.quietMs = 0;
      else if (found !== "dead") wait.giveUp(silenceError(wait.what, found === "unknown" ? "silent" : found));
    }
  }
}

const silences = {
  stopped: {
    text: "the sandbox's guest was stopped (SIGSTOP) and does not answer",
    hint: "Another process on this machine stopped it: resume it with `kill -CONT`, or remove the sandbox with `caisson sandbox rm`.",
  },
  frozen: { text: "the sandbox is frozen", hint: "Resume it with `caisson sandbox resume`." },
  silent: {
    text: "the sandbox's guest does not answer",
    hint: "The machine may be overloaded: try again, or remove the sandbox with `caisson sandbox rm`.",
  },
  slow: {
    text: "the sandbox's guest is alive, but makes no progress on this request",
    hint: "Try again; if it happens again, remove the sandbox with `caisson sandbox rm`.",
  },
} as const;
export type Silence = keyof typeof silences;

export function silenceError(what: string, guest: Silence): CaissonError {
  const { text, hint } = silences[guest];
  return new CaissonError("timeout", `${what}: ${text}`, { hint, details: { guest } });
}

/** Returns how a guest failed to answer, or null for any other error. */
export function silenceOf(error: unknown): Silence | null {
  const guest = error instanceof CaissonError && error.code === "timeout" ? error.details?.guest : undefined;
  return typeof guest === "string" && guest in silences ? (guest as Silence) : null;
}

/**
 * Whether an error means that the guest does not answer at all and is unusable. A slow or frozen guest may continue
 * later.
 */
export function isUnresponsive(error: unknown): boolean {
  const silence = silenceOf(error);
  return silence === "stopped" || silence === "silent";
}

/**
 * Explains why a guest did not even greet us, if the host can tell. Throws what the call throws, `timeout` with
 * `details.guest`, or `lost` for a dead guest.
 */
export async function explainSilence<T>(call: Promise<T>, about: { what: string; condition: () => Promise<GuestCondition> }): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof CaissonError) || error.code !== "timeout") throw error;
    const condition = await conditionOrUnknown(about.condition());
    if (condition === "dead") throw new CaissonError("lost", `${about.what}: the sandbox's guest is dead`, { cause: error });
    throw silenceError(about.what, condition === "stopped" || condition === "frozen" ? condition : "silent");
  }
}

export function cancelledError(what: string): CaissonError {
  return new CaissonError("cancelled", `${what}: cancelled`);
}

async function conditionOrUnknown(condition: Promise<GuestCondition>): Promise<GuestCondition> {
  return (await ignore(condition, "a condition that cannot be read is unknown")) ?? "unknown";
}
