import { type JobFacts, needsDriving } from "../../contract/durable/durable-job.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { JOB_LABEL } from "../../contract/label/station-labels.ts";
import type { Crashpoint } from "../../lib/crashpoint.ts";
import { ignore } from "../../lib/failures.ts";
import { LEASE_TTL_MS } from "../../log/hold-lease.ts";
import type { Log, PlacedEvent } from "../../log/log.ts";
import { type Drive, type DriveEnd, startDrive } from "./drive.ts";
import { createDueTimes } from "./due-times.ts";
import { emptyFold, type Folded, toJobHead } from "./durable-log.ts";
import type { AnyKind } from "./kind.ts";

/** The most jobs that start at the same time. This does not limit how many wait for their effects. */
const BEGINNING_MAX = 32;
/**
 * How many folded states we keep for the next drive, so that a job that waits a thousand times is not folded from the
 * start each time.
 */
const REMEMBERED_MAX = 64;
const DUE_TIMES_MAX = 10_000;
const OPEN_MAX = 100_000;

export interface DriverOptions {
  log: Log;
  kinds: readonly AnyKind[];
  /** This process as a lease holder. */
  holder: string;
  holderGone: (holder: string) => boolean;
  crashpoint: Crashpoint;
  /** For children that are runs: whether a run has ended or was removed, and how to continue it. */
  runs: {
    isOver(run: string): Promise<boolean>;
    /** Continues a run without a driver, unless a user paused it. */
    tend(run: string): Promise<void>;
  };
  /** Receives the defect of a job, which is then left alone until another event is appended. */
  onDefect: (error: unknown) => void;
  /** Defaults to the machine's clock. */
  now?: () => Date;
}

/**
 * Drives jobs of all kinds. A station drives every job (`serve`); a process that was started for particular jobs drives
 * only those (`drive`). A waiting job costs this process only a due time: we release its lease, and the event that it
 * waits for starts it again, even if another process appends that event. Several drivers may work on one log: only the
 * driver that holds a job's lease performs the job's effects.
 */
export interface Driver extends AsyncDisposable {
  /** Drives the job of this stream in this process whenever there is something to do, until it ends. */
  drive(stream: string): void;
  /** Drives all present and future jobs in this process. Resolves when all open jobs have been checked. */
  serve(): Promise<void>;
  /** Resolves when this process is driving no job. For tests, and for a station that shuts down. */
  idle(): Promise<void>;
}

export function createDriver(options: DriverOptions): Driver {
  return new LocalDriver(options);
}

interface AtWork {
  drive: Drive;
  /** Whether something happened outside the stream during the drive. */
  again: boolean;
}

class LocalDriver implements Driver {
  readonly #options: DriverOptions;
  readonly #now: () => Date;
  readonly #end = new AbortController();
  readonly #atWork = new Map<string, AtWork>();
  readonly #asked = new Set<string>();
  readonly #remembered = new Map<string, Folded<unknown>>();
  /** The jobs that another process held at the last check. */
  readonly #elsewhere = new Set<string>();
  /** The jobs to start, in order. */
  readonly #waiting = new Set<string>();
  readonly #dueTimes;
  #beginning = 0;
  #isServing = false;
  #following: Promise<void> | undefined;
  #elsewhereTimer: NodeJS.Timeout | undefined;
  #idle: (() => void)[] = [];

  constructor(options: DriverOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => new Date());
    this.#dueTimes = createDueTimes({
      max: DUE_TIMES_MAX,
      now: this.#now,
      onDue: (stream) => this.#takeUp(stream),
      lookAgain: () => void this.#lookAtAll().catch(options.onDefect),
    });
  }

  drive(stream: string): void {
    this.#asked.add(stream);
    void this.#follow()
      .then(() => this.#takeUp(stream))
      .catch(this.#options.onDefect);
  }

  async serve(): Promise<void> {
    this.#isServing = true;
    await this.#follow();
    await this.#lookAtAll();
  }

  async idle(): Promise<void> {
    while (this.#waiting.size > 0 || this.#atWork.size > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(new CaissonError("cancelled", "the station was closed"));
    clearInterval(this.#elsewhereTimer);
    this.#dueTimes[Symbol.dispose]();
    this.#waiting.clear();
    await this.idle();
    await this.#following;
  }

  /** Receives every event that is appended from now on. Resolves as soon as it does. */
  async #follow(): Promise<void> {
    if (this.#following !== undefined || this.#end.signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#following = promise;
    const { log, kinds } = this.#options;
    const prefix = [...kinds.map((kind) => kind.prefix), "run/"];
    const afterPosition = await log.lastPosition();
    const follow = async () => {
      for await (const event of log.subscribeAll({ prefix, afterPosition, signal: this.#end.signal })) await this.#hear(event);
    };
    void follow().catch(this.#options.onDefect).finally(resolve);
    this.#elsewhereTimer = setInterval(() => this.#lookElsewhere(), LEASE_TTL_MS);
    this.#elsewhereTimer.unref();
  }

  async #hear({ stream, type, seq }: PlacedEvent): Promise<void> {
    if (stream.startsWith("run/")) {
      if (type === "run.ended") await this.#tellParent(stream);
      return;
    }
    if (type === "driven.ended") await this.#tellParent(stream);
    // This process has already folded the event, because it appended it.
    if ((this.#remembered.get(stream)?.seq ?? 0) >= seq) return;
    if (this.#drives(stream)) this.#takeUp(stream);
  }

  async #tellParent(child: string): Promise<void> {
    const head = (await ignore(this.#options.log.head(child), "a damaged child has no known parent"))?.head as Partial<
      JobFacts & { labels: Record<string, string> }
    >;
    const parent = child.startsWith("run/") ? head?.labels?.[JOB_LABEL] : head?.parent;
    if (typeof parent !== "string" || this.#kindOf(parent) === undefined || !this.#drives(parent)) return;
    const working = this.#atWork.get(parent);
    if (working) working.again = true;
    this.#takeUp(parent);
  }

  #drives(stream: string): boolean {
    return this.#isServing || this.#asked.has(stream);
  }

  #kindOf(stream: string): AnyKind | undefined {
    return this.#options.kinds.find(({ prefix }) => stream.startsWith(prefix));
  }

  async #lookAtAll(): Promise<void> {
    const { log, kinds } = this.#options;
    for (const kind of kinds) {
      const { heads } = await log.heads({ prefix: kind.prefix, open: true, limit: OPEN_MAX });
      // The oldest come first.
      for (const head of heads.reverse()) {
        const { facts, damage } = toJobHead(kind, head);
        if (damage === null) await this.#look(head.stream, facts);
      }
    }
  }

  /** Starts a job if there is something to do, and otherwise stores its due time. */
  async #look(stream: string, facts: JobFacts): Promise<void> {
    if (needsDriving(facts)) return this.#takeUp(stream);
    const { waits } = facts;
    if (facts.paused !== null || waits === null) return;
    if (waits.due !== null) this.#dueTimes.set(stream, new Date(waits.due));
    for (const child of waits.children) if (await this.#isOver(child)) return this.#takeUp(stream);
    for (const child of waits.children) await this.#tend(child);
  }

  async #isOver(child: string): Promise<boolean> {
    if (child.startsWith("run/")) return await this.#options.runs.isOver(child.slice("run/".length));
    const head = await this.#options.log.head(child);
    return head === null || (head.head as unknown as JobFacts).finish !== null;
  }

  /** Continues a child on behalf of the waiting job. */
  async #tend(child: string): Promise<void> {
    try {
      if (child.startsWith("run/")) await this.#options.runs.tend(child.slice("run/".length));
      else if (!this.#isServing) this.drive(child);
    } catch (error) {
      this.#options.onDefect(error);
    }
  }

  /** Checks the jobs that other processes held, because no event reports the death of a process. */
  #lookElsewhere(): void {
    for (const stream of this.#elsewhere) this.#takeUp(stream);
    this.#elsewhere.clear();
  }

  #takeUp(stream: string): void {
    if (this.#end.signal.aborted) return;
    const working = this.#atWork.get(stream);
    if (working === undefined) {
      this.#waiting.add(stream);
      this.#beginWaiting();
    } else working.drive.poke();
  }

  #beginWaiting(): void {
    for (const stream of this.#waiting) {
      if (this.#beginning >= BEGINNING_MAX) return;
      this.#waiting.delete(stream);
      this.#begin(stream);
    }
  }

  #begin(stream: string): void {
    const kind = this.#kindOf(stream);
    if (kind === undefined) return;
    const known = this.#remembered.get(stream);
    const folded = known ?? emptyFold(kind);
    this.#remember(stream, folded);
    const drive = startDrive(kind, stream.slice(kind.prefix.length), folded, {
      ...this.#options,
      now: this.#now,
      isOver: (child) => this.#isOver(child),
      signal: this.#end.signal,
    });
    const working: AtWork = { drive, again: false };
    this.#atWork.set(stream, working);
    this.#beginning += 1;
    void drive.quiet.then(() => {
      this.#beginning -= 1;
      this.#beginWaiting();
    });
    void drive.done
      .then(
        (end) => this.#over(stream, { end, folded, working, isFirst: known === undefined }),
        (error: unknown) => this.#handleFailure(stream, error),
      )
      .catch(this.#options.onDefect)
      .finally(() => {
        if (this.#atWork.get(stream) === working) this.#atWork.delete(stream);
        for (const resolve of this.#idle.splice(0)) resolve();
      });
  }

  async #over(
    stream: string,
    { end, folded, working, isFirst }: { end: DriveEnd; folded: Folded<unknown>; working: AtWork; isFirst: boolean },
  ): Promise<void> {
    const { waits } = folded.facts;
    this.#dueTimes.set(stream, end === "waits" && waits?.due ? new Date(waits.due) : null);
    if (end === "elsewhere") this.#elsewhere.add(stream);
    if (end === "ended") {
      this.#asked.delete(stream);
      this.#remembered.delete(stream);
    }
    // The previous driver may have driven the children as well.
    if (end === "waits" && isFirst) for (const child of waits?.children ?? []) await this.#tend(child);
    // From here on, a new event starts the job again. Events that arrived during the release are in the log, which is
    // checked next.
    this.#atWork.delete(stream);
    if (end !== "waits" && end !== "paused") return;
    if (working.again || (await this.#options.log.lastSeq(stream)) > folded.seq) this.#takeUp(stream);
  }

  #handleFailure(stream: string, error: unknown): void {
    this.#remembered.delete(stream);
    if (this.#end.signal.aborted) return;
    if (error instanceof CaissonError && error.code === "superseded") this.#elsewhere.add(stream);
    else this.#options.onDefect(error);
  }

  #remember(stream: string, folded: Folded<unknown>): void {
    this.#remembered.delete(stream);
    this.#remembered.set(stream, folded);
    for (const old of this.#remembered.keys()) {
      if (this.#remembered.size <= REMEMBERED_MAX) return;
      if (!this.#atWork.has(old)) this.#remembered.delete(old);
    }
  }
}
