import type { Model } from "../../agent/model/model.ts";
import { onTopOfSpent } from "../../agent/run-budgets.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import type { Budgets } from "../../contract/run/run.ts";
import { isAtFork, type RunFacts, waitsForResume } from "../../contract/run/run-facts.ts";
import { Priority, type RunDriver } from "../../contract/run/run-queue.ts";
import { AnswerQuestion, ContinueRun, ListRuns, type RunView, SendMessage, StartRun } from "../../contract/run/run-verbs.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import type { Log } from "../../log/log.ts";
import type { RunVerbs } from "../../verbs/runs.ts";
import type { RewindOptions } from "../forks/rewind-run.ts";
import type { TimelineOptions } from "../forks/run-timeline.ts";
import { checkMemory } from "../queue/admission.ts";
import { drivenElsewhere, subRunError, toQueue } from "../queue/adoption.ts";
import { queuePlace } from "../queue/queue-place.ts";
import { storedQueue } from "../queue/queue-view.ts";
import type { RunQueue } from "../queue/run-queue.ts";
import { type ReplayVerbOptions, replayVerb } from "../replay/replay-verb.ts";
import { labelRun } from "../runs/label-run.ts";
import { listRuns, viewOf } from "../runs/list-runs.ts";
import { removeRun } from "../runs/remove-run.ts";
import type { ReopenRun } from "../runs/reopen-run.ts";
import type { RunDrives } from "../runs/run-drives.ts";
import { allEvents, runEvents } from "../runs/run-events.ts";
import { createRequestedRun, type ModelTape, type StartRunOptions, tapeOf } from "../runs/start-run.ts";
import { type StopRunOptions, stopRun } from "../runs/stop-run.ts";
import { appendUnowned, runEndedError } from "../vocabulary/append-unowned.ts";
import { headOfRun } from "../vocabulary/head-of-run.ts";
import { refuseRewinding } from "../vocabulary/refuse-rewinding.ts";
import { checkHasWork, forkToContinue, forkVerbs } from "./fork-verbs.ts";

/** How long a detached process may take to claim its run. */
const DETACHED_START_MS_MAX = 20_000;

export interface RunVerbsOptions extends StartRunOptions, StopRunOptions {
  replay: Omit<ReplayVerbOptions, "forkAt"> & Partial<Pick<ReplayVerbOptions, "forkAt">>;
  rewinding: RewindOptions;
  turns: TimelineOptions["turns"];
  drives: RunDrives;
  /** Starts a process that drives a run independently of this one. */
  driveDetached: (run: string) => Promise<void>;
  /** Returns the station's queue, in which runs wait for their turn; null if this process is not a station. */
  queue: () => RunQueue | null;
}

export function createRunVerbs(options: RunVerbsOptions): RunVerbs {
  const { log, runs, drives } = options;
  const placeOf = (facts: RunFacts) => options.queue()?.placeOf(facts) ?? queuePlace(facts, null, null);
  const views = { log, sessions: options.sessions, driverOf: runs.driverOf, placeOf };
  const view = async (run: string): Promise<RunView> => await viewOf(await headOfRun(log, run), views);

  /** Resolves with the run as it was before its driver started. */
  const begin = async (
    run: string,
    { signal, detached, driver }: { signal: AbortSignal | undefined; detached: boolean; driver?: RunDriver | undefined },
  ): Promise<RunView> => {
    const before = await view(run);
    if (detached) await beginDetached(run, { ...options, fromSeq: before.seq + 1 });
    else drives.begin(run, defined({ signal, driver }));
    return before;
  };
  const reopen = async (run: string, request: Omit<ReopenRun, "queuedFor">, why: "resume" | "continue"): Promise<number> => {
    const queue = options.queue();
    using _ = queue?.admit((await headOfRun(log, run)).facts.owner) ?? null;
    // This process may still be cleaning up after the run's last drive.
    const driving = drives.outcome(run);
    if (driving !== undefined) await ignore(driving, "callers that wait for the run get the error");
    const seq = await runs.reopen(run, { ...request, ...(queue !== null && { queuedFor: why }) });
    await queue?.refresh(run);
    return seq;
  };
  /** A station may already drive the run. A follower that starts at this event's number misses nothing. */
  const viewFrom = async (run: string, seq: number): Promise<RunView> => ({ ...(await view(run)), seq });
  /** For calls that may change what a queued run waits for. */
  const thenRefreshQueue = async (run: string, saying: Promise<void>): Promise<void> => {
    await saying;
    await options.queue()?.refresh(run);
  };

  const resumeReady: RunVerbs["resume"] = async (run, { by, signal, detached = false, budgets = {}, reopens = true }) => {
    const { facts, seq } = await headOfRun(log, run);
    if (facts.status === "ended" && !reopens) throw runEndedError(run, facts);
    refuseRewinding(facts);
    const queue = options.queue();
    let lastSeq = seq;
    if (facts.status === "ended") lastSeq = await reopen(run, { by, budgets: () => budgets }, "resume");
    else if (Object.keys(budgets).length > 0) throw boundsOfOpenRun(run);
    else if (queue !== null) await queue.resume(run, { by, why: "resume" });
    else if (waitsForResume(facts)) await runs.resume(run, { by });
    if (queue !== null) return await viewFrom(run, lastSeq);
    return await begin(run, { signal, detached, driver: reopens ? undefined : "detached" });
  };

  const forks = forkVerbs({ ...options, view, resume: resumeReady });
  return {
    async start(input, { signal, owner = LOCAL_OWNER } = {}) {
      const request = parseRequest(StartRun, input, "a run");
      const queue = options.queue();
      if (queue !== null) return await view(await startQueued(request, queue, { ...options, owner }));
      refuseWaiting(request);
      const run = await createRequestedRun(request, { ...options, owner });
      const initialView = await view(run);
      if (request.detached) await options.driveDetached(run);
      else drives.begin(run, { ...(signal && { signal }), ...modelOf(tapeOf(request), options) });
      return initialView;
    },
    get: view,
    list: async (request = {}) => await listRuns(parseRequest(ListRuns, request, "a list of runs"), views),
    events: (run, eventOptions = {}) => runEvents(log, run, eventOptions),
    allEvents: (eventOptions = {}) => allEvents(log, eventOptions),
    lastPosition: () => log.lastPosition(),
    wait: (run, { signal } = {}) => waitFor(run, { ...options, view, signal }),
    send: async (run, message) => ({ message: await sendMessage(run, parseRequest(SendMessage, message, "a message"), options) }),
    answer: async (run, answer) => await runs.answer(run, defined(parseRequest(AnswerQuestion, answer, "an answer"))),
    pause: (run, { text = "paused" } = {}) => thenRefreshQueue(run, runs.pause(run, { text })),
    async resume(run, request) {
      if (isAtFork((await headOfRun(log, run)).facts)) await checkHasWork(run, runs);
      return await resumeReady(run, request);
    },
    async continue(run, request, { signal } = {}) {
      const { detached, ...turn } = parseRequest(ContinueRun, request, "a turn");
      const seq = await reopen(run, reopenedBy(turn), "continue");
      return options.queue() === null ? await begin(run, { signal, detached }) : await viewFrom(run, seq);
    },
    ...forks,
    async prioritize(run, { priority, by }) {
      await thenRefreshQueue(run, prioritize(run, { priority: parseRequest(Priority, priority, "a priority"), by }, log));
      return await view(run);
    },
    label: (run, changes, { by }) => labelRun(run, changes, { by, log }).then(() => view(run)),
    async adopt(run, { by }) {
      const queue = options.queue();
      const { facts } = await headOfRun(log, run);
      if (facts.status === "ended") throw runEndedError(run, facts);
      if (isAtFork(facts)) await checkHasWork(run, runs);
      await (queue === null ? leaveToStation(facts, { by }, options) : queue.resume(run, { by, why: "adoption" }));
      return await view(run);
    },
    queue: async () => options.queue()?.view() ?? (await storedQueue(log)),
    stop: (run, request) => thenRefreshQueue(run, stopRun(run, request, options)),
    remove: (run) => removeRun(run, log),
    replay: (run, request = {}) => replayVerb(run, request, { forkAt: forkToContinue(forks), ...options.replay }),
    check: () => log.check(),
  };
}

async function startQueued(request: StartRun, queue: RunQueue, options: StartRunOptions & { owner: string }): Promise<string> {
  using _ = queue.admit(options.owner);
  const { priority = 0, startAt } = request;
  const tape = tapeOf(request);
  const run = await createRequestedRun(request, options, {
    queued: {
      ...{ by: "user", for: "start", priority, startAt: startAt === undefined ? null : new Date(startAt).toISOString() },
      ...(Object.keys(tape).length > 0 && { tape }),
    },
    checkLimits: ({ memoryBytes }) => checkMemory(memoryBytes, queue.bounds),
  });
  await queue.refresh(run);
  return run;
}

/** Queues the run for the current station or the next one. */
async function leaveToStation(
  facts: RunFacts,
  { by }: { by: string },
  { log, runs }: Pick<RunVerbsOptions, "log" | "runs">,
): Promise<void> {
  const { run } = facts;
  if (facts.parent !== null) throw subRunError(facts);
  const driver = await runs.driverOf(run);
  if (driver !== null) throw drivenElsewhere(run, driver);
  await appendUnowned(log, run, (now) => toQueue(now, { by, why: "adoption" }));
}

async function sendMessage(run: string, message: ReturnType<typeof SendMessage.parse>, options: RunVerbsOptions): Promise<string> {
  const { facts } = await headOfRun(options.log, run);
  const id = await options.runs.send(run, message);
  // The message is what the fork waited for.
  if (isAtFork(facts)) await options.queue()?.resume(run, { by: "user", why: "resume" });
  return id;
}

function reopenedBy({ text, by, model, budgets, attended, onAsk, onBudget }: Omit<ContinueRun, "detached">): ReopenRun {
  return {
    text,
    by,
    // A fork, or a run that was rewound, continues with what it has left.
    budgets(facts) {
      const all = onTopOfSpent(budgets, facts);
      return isAtFork(facts) ? pick(all, budgets) : all;
    },
    onAsk: onAsk ?? (attended ? "wait" : "deny"),
    onBudget: onBudget ?? (attended ? "ask" : "stop"),
    ...defined({ model }),
  };
}

/** Returns the values of the limits that were requested. */
function pick(budgets: Budgets, requested: Budgets): Budgets {
  return Object.fromEntries(Object.entries(budgets).filter(([name]) => Object.hasOwn(requested, name)));
}

/** Without a station there is no queue for a priority or a start time. */
function refuseWaiting({ priority, startAt }: StartRun): void {
  if (priority === undefined && startAt === undefined) return;
  throw noStation(startAt === undefined ? "has a run queue with priorities" : "starts runs at a later time");
}

const noStation = (does: string) =>
  new CaissonError("unavailable", `no station runs here, and only a station ${does}`, { hint: "Start one: caisson up --detach" });

function boundsOfOpenRun(run: string): CaissonError {
  return new CaissonError("conflict", `the run ${run} has not ended, so its bounds cannot be changed from outside`, {
    hint: `If it asks to exceed one: caisson answer ${run} allow --max-steps N`,
  });
}

async function prioritize(run: string, { priority, by }: { priority: number; by: string }, log: Log): Promise<void> {
  await appendUnowned(log, run, ({ queued }) => {
    if (queued !== null) return [{ type: "run.prioritized", data: { by, priority } }];
    throw new CaissonError("conflict", `the run ${run} is not in a queue`, { hint: "Run `caisson queue` to list the waiting runs." });
  });
}

/** Resolves once the detached process has claimed the run. */
async function beginDetached(run: string, options: Pick<RunVerbsOptions, "log" | "driveDetached"> & { fromSeq: number }): Promise<void> {
  const { log, fromSeq } = options;
  await options.driveDetached(run);
  const signal = AbortSignal.timeout(DETACHED_START_MS_MAX);
  for await (const { type } of runEvents(log, run, { fromSeq, follow: true, signal })) if (type === "run.claimed") return;
  throw new CaissonError("unavailable", `the process started for ${run} did not continue it`, {
    hint: `Run \`caisson resume ${run}\` to see why.`,
  });
}

/** Returns a model that plays from or records to a file, for as long as this process drives the run. */
function modelOf(tape: ModelTape, options: Pick<RunVerbsOptions, "model">): { model?: (name: string) => Promise<Model> } {
  return Object.keys(tape).length === 0 ? {} : { model: (name) => options.model(name, tape) };
}

async function waitFor(
  run: string,
  options: RunVerbsOptions & { view: (run: string) => Promise<RunView>; signal: AbortSignal | undefined },
): Promise<RunView> {
  const { view, drives, signal } = options;
  const before = await view(run);
  const drive = drives.outcome(run);
  if (before.finish === null) {
    await (drive === undefined ? untilEnded(run, options) : orCancelled(drive, run, signal));
    return await view(run);
  }
  // This process may still be cleaning up after it.
  const settled = drive && ignore(drive, "callers that wait for the run got the error");
  if (settled !== undefined) await orCancelled(settled, run, signal);
  return before;
}

async function untilEnded(run: string, { log, signal }: Pick<RunVerbsOptions, "log"> & { signal: AbortSignal | undefined }): Promise<void> {
  let ended = false;
  // It may end, be continued and end again. Labels may change after its end.
  for await (const { type } of runEvents(log, run, { follow: true, ...(signal && { signal }) })) {
    if (type === "run.ended") ended = true;
    else if (type === "run.reopened" || type === "run.rewound") ended = false;
  }
  if (!ended) throw notWaitedFor(run);
}

async function orCancelled(drive: Promise<void>, run: string, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return await drive;
  const cancelled = Promise.withResolvers<never>();
  const cancel = () => cancelled.reject(notWaitedFor(run));
  signal.addEventListener("abort", cancel);
  if (signal.aborted) cancel();
  try {
    await Promise.race([drive, cancelled.promise]);
  } finally {
    signal.removeEventListener("abort", cancel);
  }
}

const notWaitedFor = (run: string) => new CaissonError("cancelled", `waiting for ${run} was cancelled`);
