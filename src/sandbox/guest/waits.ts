import { CaissonError } from "../../contract/error.ts";

/** What the host sees of a guest by its own means, without asking it. */
export type GuestCondition = "running" | "frozen" | "stopped" | "dead" | "unknown";

/** In each window of waiting so many bytes have to move. */
export interface Bound {
  windowMs: number;
  bytesMin: number;
}

/** For a single answer: a guest that lives may be removing a large tree on a slow disk. */
export const ANSWER_BOUND: Bound = { windowMs: 300_000, bytesMin: 1 };
/** For bytes, either way, and for listings: slower than this is not slow but a guest that plays for time. */
export const TRANSFER_BOUND: Bound = { windowMs: 60_000, bytesMin: 16_384 };
/**
 * A guest beats every 5 s by itself; after this long without a sign, and of a request without progress, somebody looks.
 */
const QUIET_MS = 10_000;
export const PING_TIMEOUT_MS = 5_000;
const TICK_MS = 1_000;

/** One caller who waits for the guest on one stream. Time counts only while it is the guest's turn. */
export interface Wait {
  /** Bytes came, or were taken. */
  moved(bytes: number): void;
  /** Whether it is the guest's turn; from the beginning it is. */
  guestsTurn(is: boolean): void;
  /** From here on another bound holds. */
  bound(bound: Bound): void;
  end(): void;
}

interface OpenWait {
  what: string;
  stream: number;
  bound: Bound;
  running: boolean;
  /** Of the window at hand. */
  waitedMs: number;
  bytes: number;
  quietMs: number;
  giveUp: (error: CaissonError) => void;
  end: () => void;
}

export interface WaitRequest {
  /** What is tried, for messages. */
  what: string;
  stream: number;
  bound: Bound;
  signal?: AbortSignal | undefined;
  /** The stream was given up by then. Never called after `end`. */
  onGivenUp: (error: CaissonError) => void;
}

/**
 * Everybody who waits for one guest. A wait ends with what came, with `cancelled`, or with `timeout` and
 * `details.guest`: `stopped`, `frozen` and `silent` for a guest that does not answer at all, `slow` for one that
 * answers pings but does not get on with this request. A guest that is dead ends the connection. Time is counted in
 * ticks, so that a host that stood still itself blames nobody.
 */
export class Waits {
  readonly #open = new Set<OpenWait>();
  readonly #options: { ping: () => Promise<unknown>; cancel: (stream: number) => void; fail: (error: CaissonError) => void };
  /** How the host looks at the guest by itself; set by whoever knows the wall. */
  condition: (() => Promise<GuestCondition>) | null = null;
  #ticking: NodeJS.Timeout | null = null;
  #looking = false;

  constructor(options: { ping: () => Promise<unknown>; cancel: (stream: number) => void; fail: (error: CaissonError) => void }) {
    this.#options = options;
  }

  /** Throws `cancelled` when the signal has fired already; nothing was given up then. */
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
      bound(next) {
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
   * Asks the guest and looks at it. Null when it answers and nothing holds it; fails the connection when it is dead.
   */
  async look(): Promise<Exclude<GuestCondition, "running"> | null> {
    const [condition, answers] = await Promise.all([
      this.condition?.().catch((): GuestCondition => "unknown") ?? "unknown",
      this.#options.ping().then(
        () => true,
        () => false,
      ),
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
      // What moved while we looked is answered for.
      if (wait.quietMs < QUIET_MS) continue;
      if (found === null) wait.quietMs = 0;
      else if (found !== "dead") wait.giveUp(silenceError(wait.what, found === "unknown" ? "silent" : found));
    }
  }
}

const silences = {
  stopped: {
    text: "the sandbox's guest was stopped (SIGSTOP) and does not answer",
    hint: "Somebody on this machine stopped it: `kill -CONT` makes it go on, `caisson sandbox rm` ends the sandbox.",
  },
  frozen: { text: "the sandbox is frozen", hint: "`caisson sandbox resume` makes it go on." },
  silent: {
    text: "the sandbox's guest does not answer",
    hint: "The machine may be overloaded; try again, or end the sandbox with `caisson sandbox rm`.",
  },
  slow: {
    text: "the sandbox's guest lives, but does not get on with it",
    hint: "Try again; should it happen again, end the sandbox with `caisson sandbox rm`.",
  },
} as const;
export type Silence = keyof typeof silences;

export function silenceError(what: string, guest: Silence): CaissonError {
  const { text, hint } = silences[guest];
  return new CaissonError("timeout", `${what}: ${text}`, { hint, details: { guest } });
}

/** How a guest failed to answer, when that is what an error says. */
export function silenceOf(error: unknown): Silence | null {
  const guest = error instanceof CaissonError && error.code === "timeout" ? error.details?.guest : undefined;
  return typeof guest === "string" && guest in silences ? (guest as Silence) : null;
}

/**
 * Whether an error says that the guest does not answer at all: there is no working with it. One that is slow, or that
 * somebody froze, may go on later.
 */
export function isUnresponsive(error: unknown): boolean {
  const silence = silenceOf(error);
  return silence === "stopped" || silence === "silent";
}

/**
 * For a guest that did not even greet: says why, as far as the host can see. Throws what the call throws, `timeout`
 * with `details.guest`, `lost` for a dead one.
 */
export async function explainSilence<T>(call: Promise<T>, about: { what: string; condition: () => Promise<GuestCondition> }): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof CaissonError) || error.code !== "timeout") throw error;
    const condition = await about.condition().catch((): GuestCondition => "unknown");
    if (condition === "dead") throw new CaissonError("lost", `${about.what}: the sandbox's guest is dead`, { cause: error });
    throw silenceError(about.what, condition === "stopped" || condition === "frozen" ? condition : "silent");
  }
}

export function cancelledError(what: string): CaissonError {
  return new CaissonError("cancelled", `${what}: cancelled`);
}
