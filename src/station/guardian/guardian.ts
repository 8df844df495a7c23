import { typesFor } from "../../contract/event/event-family.ts";
import type { GuardianConfig } from "../../contract/guardian/guardian-config.ts";
import { runEvents } from "../../contract/run/run-event.ts";
import type { Log, PlacedEvent, StoredEvent } from "../../log/log.ts";
import { readPages } from "../../log/read-pages.ts";
import { parseRunEvent } from "../runs/owned-journal.ts";
import { toRunHead } from "../vocabulary/head-of-run.ts";
import { runOf, runStream } from "../vocabulary/station-names.ts";
import { unwatchedBecause } from "./choose-action.ts";
import { type EvaluateOptions, evaluateRun } from "./evaluate-run.ts";
import { foldTrajectory } from "./fold-trajectory.ts";
import { emptyTrajectory, type Trajectory } from "./trajectory.ts";

export interface GuardianOptions extends Omit<EvaluateOptions, "others" | "catchUp" | "signal"> {
  log: Log;
  settings: GuardianConfig;
  /** Receives the guardian's own failures, which never affect a run. */
  onDefect: (error: unknown) => void;
}

/** The most runs to follow at once. Beyond this, a new run replaces the one followed for longest. */
const RUNS_MAX = 5000;
/** The most events to replay of a run that is older than the guardian. The last events are enough. */
const REPLAYED_EVENTS_MAX = 20_000;
/** Noticing a step slightly later does no harm, and reading events in batches saves a lot. */
const REST_MS = 250;
/** How often the guardian itself may fail on a run before it leaves the run alone. */
const DEFECTS_MAX = 3;
/**
 * Includes `run.claimed`, because a resumed run can be in a long tool call, and the dead station's decision may be
 * lost.
 */
const lookedAtAfter: ReadonlySet<string> = new Set(["step.started", "run.queued", "run.claimed"]);

/**
 * Follows all runs through the log and evaluates each after every step. It never blocks a run: it reads the log,
 * appends its decisions, and reports failures only to `onDefect`. Its knowledge of a run is a fold of the run log,
 * including its own decisions, so a restarted guardian continues where the last one stopped.
 */
export class Guardian implements AsyncDisposable {
  readonly #options: GuardianOptions;
  readonly #ending = new AbortController();
  readonly #runs = new Map<string, Trajectory>();
  readonly #ignored = new Set<string>();
  readonly #looking = new Map<string, Promise<void>>();
  readonly #again = new Set<string>();
  readonly #defects = new Map<string, number>();
  #following: Promise<void> = Promise.resolve();

  constructor(options: GuardianOptions) {
    this.#options = options;
  }

  /** Starts with the open runs. */
  start(): void {
    this.#following = this.#follow().catch((error: unknown) => {
      if (!this.#ending.signal.aborted) this.#options.onDefect(error);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#following;
    await Promise.all(this.#looking.values());
  }

  async #follow(): Promise<void> {
    const { log } = this.#options;
    const { signal } = this.#ending;
    const afterPosition = await log.lastPosition();
    const { heads } = await log.heads({ prefix: runStream(""), open: true, limit: RUNS_MAX });
    for (const { stream } of heads.reverse()) {
      if (signal.aborted) return;
      const run = runOf(stream);
      await this.#replay(run).catch((error: unknown) => this.#handleFailure(run, error));
      this.#look(run);
    }
    const subscription = { prefix: runStream(""), types: trajectoryTypes, afterPosition, restMs: REST_MS, signal };
    for await (const stored of log.subscribeAll(subscription)) {
      const run = runOf(stored.stream);
      await this.#take(run, stored).catch((error: unknown) => this.#handleFailure(run, error));
    }
  }

  async #take(run: string, stored: PlacedEvent): Promise<void> {
    if (this.#ignored.has(run)) {
      if (stored.type === "run.ended") this.#ignored.delete(run);
      return;
    }
    // A run that started during the replay of the others may be known already.
    if (!this.#runs.has(run)) {
      if (stored.type === "run.created") this.#keep(emptyTrajectory(run));
      else await this.#replay(run);
    }
    const trajectory = this.#runs.get(run);
    if (trajectory === undefined) return;
    fold(trajectory, stored);
    if (trajectory.status === "ended") this.#forget(run);
    else if (lookedAtAfter.has(stored.type)) this.#look(run);
  }

  /** Restores a run from its log, without deciding anything. */
  async #replay(run: string): Promise<void> {
    const trajectory = await trajectoryOf(this.#options.log, run);
    if (trajectory.status !== "ended") this.#keep(trajectory);
  }

  #keep(trajectory: Trajectory): void {
    if (this.#runs.size >= RUNS_MAX) this.#forget(this.#runs.keys().next().value ?? "");
    this.#runs.set(trajectory.run, trajectory);
  }

  #forget(run: string): void {
    this.#runs.delete(run);
    this.#defects.delete(run);
  }

  #ignore(run: string): void {
    this.#forget(run);
    if (this.#ignored.size < RUNS_MAX) this.#ignored.add(run);
  }

  /** Evaluates a run, one evaluation at a time. Events that arrive meanwhile cause another one. */
  #look(run: string): void {
    const trajectory = this.#runs.get(run);
    if (trajectory === undefined || this.#ending.signal.aborted) return;
    if (unwatchedBecause(trajectory, this.#options.settings) !== null) {
      this.#ignore(run);
      return;
    }
    if (this.#looking.has(run)) {
      this.#again.add(run);
      return;
    }
    const looking = this.#evaluate(trajectory)
      .catch((error: unknown) => this.#handleFailure(run, error))
      .finally(() => {
        this.#looking.delete(run);
        if (this.#again.delete(run)) this.#look(run);
      });
    this.#looking.set(run, looking);
  }

  async #evaluate(trajectory: Trajectory): Promise<void> {
    const { log } = this.#options;
    await evaluateRun(trajectory, {
      ...this.#options,
      signal: this.#ending.signal,
      others: () => this.#runs.values(),
      catchUp: (each) => catchUp(log, each),
    });
  }

  #handleFailure(run: string, error: unknown): void {
    if (this.#ending.signal.aborted) return;
    const times = (this.#defects.get(run) ?? 0) + 1;
    this.#defects.set(run, times);
    if (times >= DEFECTS_MAX) this.#ignore(run);
    this.#options.onDefect(error);
  }
}

/** Returns what the guardian knows of a run, from the run log alone. Throws `internal` if the log cannot be read. */
export async function trajectoryOf(log: Log, run: string): Promise<Trajectory> {
  const head = await log.head(runStream(run));
  const trajectory = emptyTrajectory(run);
  const [created] = await log.read(runStream(run), { limit: 1 });
  if (created === undefined || head === null) return { ...trajectory, status: "ended" };
  fold(trajectory, created);
  const { facts } = toRunHead(head);
  if (facts.forked !== null) Object.assign(trajectory, { session: facts.session, owner: facts.owner, createdAt: facts.createdAt });
  const from = Math.max(2, head.seq - REPLAYED_EVENTS_MAX);
  trajectory.seq = from - 1;
  await catchUp(log, trajectory);
  trajectory.steps = Math.max(trajectory.steps, facts.step);
  return trajectory;
}

async function catchUp(log: Log, trajectory: Trajectory): Promise<void> {
  for await (const events of readPages(log, runStream(trajectory.run), { fromSeq: trajectory.seq + 1 })) {
    for (const event of events) fold(trajectory, event);
  }
}

const trajectoryTypes = typesFor(runEvents, "guardian");
const followedTypes: ReadonlySet<string> = new Set(trajectoryTypes);

/** Does not even parse events that do not concern a trajectory. */
function fold(trajectory: Trajectory, stored: StoredEvent): void {
  if (stored.damage === undefined && !followedTypes.has(stored.type)) {
    trajectory.seq = Math.max(trajectory.seq, stored.seq);
    return;
  }
  foldTrajectory(trajectory, { ...parseRunEvent(stored), seq: stored.seq });
}
