import { type Concurrency, createConcurrency } from "./concurrency.ts";
import { type RequestClass, requestClasses } from "./request-class.ts";
import { emptyQueues, nextOf, type Refusal, type Share, type Submission, type Waiting } from "./share.ts";
import { createStartRate, type StartRate } from "./start-rate.ts";

/** The most waiting requests of one caller and of all. */
const WAITING_PER_KEY_MAX = 64;
const WAITING_MAX = 256;
/** How long starting requests may occupy the event loop before other work has a turn. */
const SLICE_MS = 2;
/** The same while connections arrive, since Node accepts one per turn. */
const ACCEPTING_SLICE_MS = 0.5;
const ACCEPTING_MS = 10;
/** A caller whose queue was empty within this time sends a burst; otherwise it sends more than its share. */
const BURST_MS = 250;
/** How long a request waits at most: in a burst, and for a caller that sends more than its share. */
type Patience = Readonly<Record<RequestClass, { burst: number; overload: number }>>;

/** What a scheduler allows at once. */
export interface Pace {
  atOnce: { min: number; max: number };
  /** After this time an unanswered request is assumed to wait for something, and makes room for another. */
  freshMs: number;
  patience: Patience;
}

/** The pace of all requests. */
export const requestPace: Pace = {
  atOnce: { min: 4, max: 8 },
  freshMs: 30,
  patience: {
    vital: { burst: 5_000, overload: 2_000 },
    control: { burst: 5_000, overload: 1_000 },
    work: { burst: 2_000, overload: 80 },
    list: { burst: 1_000, overload: 40 },
  },
};

/**
 * The pace of calls that create a durable job: they write to the disk several times, and more at once would only wait
 * for each other. Each counts until it is answered.
 */
export const creationPace: Pace = {
  atOnce: { min: 4, max: 6 },
  freshMs: 5_000,
  patience: { ...requestPace.patience, work: { burst: 300, overload: 300 } },
};
/** A caller that retries at once would occupy the event loop with refusals. When there are many, they are delayed. */
const PACE_WINDOW_MS = 100;
const paces = [
  { from: 200, delayMs: 150 },
  { from: 80, delayMs: 40 },
] as const;
/** The cost of a request for its caller's share. */
const costs: Readonly<Record<RequestClass, number>> = { vital: 1, control: 1, work: 2, list: 3 };
const retryAfterSeconds: Readonly<Record<RequestClass, number>> = { vital: 1, control: 1, work: 1, list: 2 };

export interface SchedulerFigures {
  waiting: number;
  /** The number since the start, by class. */
  refused: Record<RequestClass, number>;
  /** The longest wait of a request that started within about the last minute. */
  waitedMs: number;
}

export interface RequestScheduler extends Disposable {
  /**
   * Starts a request now or in a later turn of the event loop, or refuses it. Call `cancel` if its caller disconnects.
   */
  submit(submission: Submission): { cancel(): void };
  /** Reports an accepted connection, behind which others may wait. */
  reportConnection(): void;
  figures(): SchedulerFigures;
}

interface SchedulerOptions {
  /** Returns the worst recent delay of the event loop. */
  loopDelayMs: () => number;
  now?: () => number;
  /** Calls back in the next turn of the event loop. */
  nextTurn?: (work: () => void) => void;
  later?: (work: () => void, delayMs: number) => void;
  pace?: Pace;
}

/**
 * Runs few requests at once to keep turns of the event loop short, since Node accepts one connection per turn. The rest
 * waits in one queue per caller. Urgent classes come first, then the caller that has been served least. Requests that
 * waited too long are refused while that is still cheap.
 */
export function createRequestScheduler(options: SchedulerOptions): RequestScheduler {
  return new FairScheduler(options);
}

class FairScheduler implements RequestScheduler {
  readonly #now: () => number;
  readonly #nextTurn: (work: () => void) => void;
  readonly #later: (work: () => void, delayMs: number) => void;
  readonly #shares = new Map<string, Share>();
  readonly #concurrency: Concurrency;
  readonly #patience: Patience;
  readonly #rate: StartRate;
  readonly #refused: Record<RequestClass, number> = { vital: 0, control: 0, work: 0, list: 0 };
  #waiting = 0;
  #isScheduled = false;
  #isEnded = false;
  #turnBeganMs: number | null = null;
  #acceptedMs = Number.NEGATIVE_INFINITY;
  #pace = { sinceMs: 0, count: 0 };
  #longest = { ms: 0, atMs: 0 };
  /** The usage of the caller served last. A returning caller starts here, without credit for the time it was idle. */
  #floor = 0;

  constructor({ loopDelayMs, now, nextTurn, later, pace = requestPace }: SchedulerOptions) {
    this.#patience = pace.patience;
    this.#now = now ?? (() => performance.now());
    this.#nextTurn = nextTurn ?? ((work) => void setImmediate(work));
    this.#later = later ?? ((work, delayMs) => void setTimeout(work, delayMs));
    this.#rate = createStartRate(this.#now());
    const onRoom = () => this.#schedule();
    this.#concurrency = createConcurrency({ ...pace, loopDelayMs, now: this.#now, later: this.#later, onRoom });
  }

  submit(submission: Submission): { cancel(): void } {
    const sinceMs = this.#now();
    const item: Waiting = { ...submission, sinceMs, isOut: false };
    const mayStart = this.#waiting === 0 && this.#hasTime(sinceMs) && this.#concurrency.hasRoom();
    if (this.#isEnded || mayStart) this.#start(item, sinceMs);
    else this.#enqueue(item);
    return {
      cancel: () => {
        const share = this.#shares.get(item.key);
        if (!item.isOut && share?.queues[item.kind].includes(item)) this.#takeOut(share, item);
      },
    };
  }

  reportConnection(): void {
    this.#acceptedMs = this.#now();
  }

  figures(): SchedulerFigures {
    return { waiting: this.#waiting, refused: { ...this.#refused }, waitedMs: Math.round(this.#longest.ms) };
  }

  [Symbol.dispose](): void {
    this.#isEnded = true;
    for (const { queues } of this.#shares.values())
      for (const kind of requestClasses) for (const item of queues[kind]) if (!item.isOut) this.#refuse(item, "overload");
    this.#shares.clear();
    this.#waiting = 0;
  }

  #start(item: Waiting, atMs: number): void {
    item.isOut = true;
    this.#rate.count(atMs);
    const waitedMs = atMs - item.sinceMs;
    if (waitedMs >= this.#longest.ms || atMs - this.#longest.atMs > 60_000) this.#longest = { ms: waitedMs, atMs };
    item.start(this.#concurrency.begin());
  }

  #refuse(item: Waiting, why: Refusal["why"]): void {
    this.#refused[item.kind] += 1;
    const atMs = this.#now();
    if (atMs - this.#pace.sinceMs > PACE_WINDOW_MS) this.#pace = { sinceMs: atMs, count: 0 };
    this.#pace.count += 1;
    const answer = () => item.refuse({ why, retryAfterSeconds: retryAfterSeconds[item.kind] });
    const delayMs = paces.find(({ from }) => this.#pace.count >= from)?.delayMs;
    if (delayMs === undefined) answer();
    else this.#later(answer, delayMs);
  }

  #takeOut(share: Share, item: Waiting): void {
    item.isOut = true;
    this.#waiting -= 1;
    share.count -= 1;
    if (share.count === 0) this.#shares.delete(item.key);
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting === 0 || this.#isEnded) return;
    this.#isScheduled = true;
    this.#nextTurn(() => this.#dispatch());
  }

  #dispatch(): void {
    this.#isScheduled = false;
    if (this.#isEnded) return;
    const beganMs = this.#now();
    const endsMs = beganMs + this.#sliceMs(beganMs);
    this.#refuseLate(beganMs);
    for (let atMs = beganMs; this.#waiting > 0 && atMs < endsMs && this.#concurrency.hasRoom(); atMs = this.#now()) {
      const { share, item } = nextOf(this.#shares);
      this.#takeOut(share, item);
      this.#floor = Math.max(this.#floor, share.used);
      share.used += costs[item.kind];
      this.#start(item, atMs);
    }
    if (this.#waiting > 0 && this.#concurrency.hasRoom()) this.#schedule();
    else if (this.#waiting > 0) this.#concurrency.lookAgain();
  }

  #refuseLate(atMs: number): void {
    for (const share of this.#shares.values()) {
      for (const kind of requestClasses) {
        const queue = share.queues[kind];
        while (queue[0] !== undefined && (queue[0].isOut || atMs - queue[0].sinceMs > this.#waitMaxOf(kind, share, atMs))) {
          const item = queue.shift() as Waiting;
          if (item.isOut) continue;
          this.#takeOut(share, item);
          this.#refuse(item, "overload");
        }
      }
    }
  }

  #sliceMs(atMs: number): number {
    return atMs - this.#acceptedMs < ACCEPTING_MS ? ACCEPTING_SLICE_MS : SLICE_MS;
  }

  /** Whether this turn of the event loop still has time. Node reads all readable sockets in one turn. */
  #hasTime(atMs: number): boolean {
    if (this.#turnBeganMs !== null) return atMs - this.#turnBeganMs < this.#sliceMs(atMs);
    this.#turnBeganMs = atMs;
    this.#nextTurn(() => {
      this.#turnBeganMs = null;
    });
    return true;
  }

  #enqueue(item: Waiting): void {
    const { key, kind, sinceMs } = item;
    const share = this.#shares.get(key) ?? { queues: emptyQueues(), count: 0, sinceMs, used: this.#floor };
    const why = this.#whyRefused(item, share);
    if (why !== null) {
      this.#refuse(item, why);
      return;
    }
    this.#shares.set(key, share);
    share.queues[kind].push(item);
    share.count += 1;
    this.#waiting += 1;
    this.#schedule();
    if (!this.#concurrency.hasRoom()) this.#concurrency.lookAgain();
  }

  /** Returns null if there is room, or if evicting something less urgent made some. */
  #whyRefused(item: Waiting, share: Share): Refusal["why"] | null {
    if (this.#isHopeless(item, share)) return "share";
    if (share.count >= WAITING_PER_KEY_MAX && !this.#evict(share, item.kind)) return "share";
    const isFull = this.#waiting >= WAITING_MAX && !this.#evictFor(share) && !this.#evict(share, item.kind);
    return isFull ? "overload" : null;
  }

  /**
   * Whether the request would only wait to be refused, judging by the queue before it and the rate at which requests
   * start.
   */
  #isHopeless({ kind, sinceMs }: Waiting, share: Share): boolean {
    if (kind === "vital" || kind === "control") return false;
    const before = requestClasses.slice(0, requestClasses.indexOf(kind) + 1);
    const ahead = before.reduce((sum, each) => sum + share.queues[each].length, 0);
    return (ahead * Math.max(1, this.#shares.size)) / this.#rate.perMs(sinceMs) > this.#waitMaxOf(kind, share, sinceMs);
  }

  /** Refuses the newest request of the least urgent class that has one, but only of classes less urgent than `keep`. */
  #evict(share: Share, keep: RequestClass | null): boolean {
    for (const kind of requestClasses.toReversed()) {
      if (kind === keep) return false;
      const item = share.queues[kind].findLast(({ isOut }) => !isOut);
      if (item === undefined) continue;
      this.#takeOut(share, item);
      this.#refuse(item, "share");
      return true;
    }
    return false;
  }

  /** Makes room by evicting from the caller with the most waiting requests. */
  #evictFor(share: Share): boolean {
    const largest = [...this.#shares.values()].reduce((most, each) => (each.count > most.count ? each : most));
    return largest.count > share.count + 1 && this.#evict(largest, null);
  }

  #waitMaxOf(kind: RequestClass, share: Share, atMs: number): number {
    return this.#patience[kind][atMs - share.sinceMs > BURST_MS ? "overload" : "burst"];
  }
}
