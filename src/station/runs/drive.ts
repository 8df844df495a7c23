import { hostname } from "node:os";
import { type CommitWatch, createCommitWatch } from "../../agent/commit-watch.ts";
import { endRun } from "../../agent/end-run.ts";
import type { HookFunction } from "../../agent/hooks.ts";
import { isLogFailure, rewindingError, systemMessage } from "../../agent/journal.ts";
import { driveRun } from "../../agent/loop.ts";
import type { Model } from "../../agent/model/model.ts";
import type { RunState } from "../../agent/run-state.ts";
import type { AgentDefinition } from "../../contract/agent/agent.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { HostProcess, ProcessIdentity } from "../../contract/process-identity.ts";
import { FAILURE_CHARACTERS_MAX, NOTICE_CHARACTERS_MAX } from "../../contract/run/run-event.ts";
import type { RunDriver } from "../../contract/run/run-queue.ts";
import type { Session } from "../../contract/session/session.ts";
import type { Crashpoint } from "../../lib/crashpoint.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import { Resources } from "../../lib/resources.ts";
import type { Log } from "../../log/log.ts";
import { isHolderGone } from "../../sandbox/process-identity.ts";
import type { RemoveRemains } from "../../sandbox/remove-remains.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { type OwnedSandbox, restricted } from "../../sandbox/sandbox.ts";
import { ifUnusable, type SessionStore } from "../../workspace/sessions.ts";
import type { KnownPlaces } from "../../workspace/wrong-place.ts";
import type { ClaimName } from "../names/claim-name.ts";
import { leaveSession } from "../sessions/session-cleanup.ts";
import { headOfRun } from "../vocabulary/head-of-run.ts";
import { type AttachedNetwork, createRunNetwork } from "./attached-network.ts";
import { finishRun } from "./finish-runs.ts";
import { foldRun, type OwnedJournal, openJournal } from "./owned-journal.ts";
import { acquireRun } from "./ownership.ts";
import { runHistory } from "./run-history.ts";
import { createRunSandbox, type RunSandbox } from "./run-sandbox.ts";
import type { Runs } from "./runs.ts";
import { setUp } from "./set-up.ts";
import { createStepStore } from "./step-store.ts";

export interface RunsOptions {
  log: Log;
  sessions: SessionStore;
  /** Returns the runtime that an agent names, or the strongest one available, with this OCI runtime if given. */
  runtime: (name: string | undefined, ociRuntime?: string) => Promise<Runtime>;
  /** Known places in the user's folders, which are never mounted. */
  places: KnownPlaces;
  model: (name: string) => Promise<Model>;
  /** Loads a sub-agent by name, with the secrets that the owner may use. */
  agent: (name: string, owner: string) => Promise<AgentDefinition>;
  identity: HostProcess;
  alive: (holder: ProcessIdentity) => boolean;
  crashpoint: Crashpoint;
  claimName: ClaimName;
  hooks?: { before?: readonly HookFunction[]; after?: readonly HookFunction[] };
  removeRemains: RemoveRemains;
  /** Receives notices for the user. */
  notice?: (text: string) => void;
  /** Prepares a workspace that does not exist yet, such as a git checkout. Called once for each new sandbox. */
  prepare?: (
    session: Session,
    place: { sandbox: OwnedSandbox; runtime: Runtime },
    reporter: { notice: (text: string) => void },
  ) => Promise<void>;
}

/** The sandbox, session and network that a run works with. */
export interface Workplace {
  sandbox: RunSandbox;
  runtime: Runtime;
  session: Session;
  network: AttachedNetwork;
  /** Of the run and its sub-runs: a commit is an event of the run whose command created it. */
  commits: CommitWatch;
}

export interface DriveOptions extends RunsOptions {
  holder: string;
  runs: Runs;
  signal: AbortSignal;
  /** The kind of driver that this process is. Defaults to `caller`. */
  driver?: RunDriver;
  /** True if the driver retries after a retryable failure, even before the first step. */
  isRetried?: boolean;
  /** The parent's workplace, in which a sub-run works. */
  shared?: Workplace;
}

/** Acquires the run's lease and drives the run to its end; see `Runs.drive`. */
export async function driveOwned(run: string, options: DriveOptions): Promise<RunState> {
  const { log, holder } = options;
  if ((await headOfRun(log, run)).facts.status === "ended") return (await foldRun(log, run)).state;
  await using ownership = await acquireRun(run, { log, holder, holderGone: (other) => isHolderGone(options, other) });
  const signal = AbortSignal.any([options.signal, ownership.lost]);
  await using journal = await openJournal({ log, run, lease: () => ownership.lease, crashpoint: options.crashpoint, signal });
  // Another process may have ended it before we had the lease.
  if (journal.state.status === "ended") return journal.state;
  if (journal.state.rewinding !== null) throw rewindingError(run);
  const { pid } = options.identity;
  const claim = {
    owner: holder,
    epoch: ownership.lease.epoch,
    pid,
    host: hostname(),
    measured: true,
    ...defined({ driver: options.driver }),
  };
  await journal.append([{ type: "run.claimed", data: claim }]);
  try {
    await driveClaimed(journal, { ...options, signal });
  } catch (error) {
    await noteFailure(journal, error, signal);
    throw error;
  }
  return journal.state;
}

async function driveClaimed(journal: OwnedJournal, options: DriveOptions): Promise<void> {
  if (journal.state.stopRequested !== null) await endStopped(journal, options);
  else if (!(await options.sessions.has(journal.state.session))) await endWithoutSession(journal, options);
  else if (options.shared) await driveIn(journal, options.shared, options);
  else await driveInSession(journal, options);
}

/** Appends why this process cannot drive the run, unless it was asked to release it, or the log itself failed. */
async function noteFailure(journal: OwnedJournal, error: unknown, signal: AbortSignal): Promise<void> {
  const { code, text, retryable } =
    error instanceof CaissonError
      ? { code: error.code, text: error.sentences, retryable: error.retryable }
      : { code: "internal", text: error instanceof Error ? error.message : String(error), retryable: false };
  const isPaused = error instanceof CaissonError && error.details?.paused === true;
  if (signal.aborted || isPaused || code === "cancelled" || (error instanceof CaissonError && isLogFailure(error))) return;
  const data = { code, text: text.slice(0, FAILURE_CHARACTERS_MAX), retryable };
  await ignore(journal.append([{ type: "run.drive_failed", data }]), "the caller gets the failure itself");
}

/** Ends a run that was asked to stop while it had no driver. This takes no model, no lock and no new sandbox. */
async function endStopped(journal: OwnedJournal, options: DriveOptions): Promise<void> {
  const network = options.shared?.network ?? { settle: async () => undefined };
  await endRun({ journal, network }, { reason: "cancelled", text: `Stopped by ${journal.state.stopRequested}.` });
  if (options.shared) return;
  const session = await options.sessions.get(journal.state.session).catch(ifUnusable);
  const name = session?.runtime ?? journal.state.sandbox?.runtime;
  // No sandbox was ever created for it.
  if (name === undefined || name === null) return await leave(journal.state, { ...options, runtimes: [] });
  await finishRun(journal.state, { ...options, runtime: await options.runtime(name) });
}

/** Ends a run whose session was removed: without the files it cannot continue. */
async function endWithoutSession(journal: OwnedJournal, options: DriveOptions): Promise<void> {
  const network = options.shared?.network ?? { settle: async () => undefined };
  await endRun({ journal, network }, { reason: "cancelled", text: `Its session ${journal.state.session} was removed.` });
}

/** Drives a run while holding its session's lock. If the lock is lost, the work ends. */
async function driveInSession(journal: OwnedJournal, options: DriveOptions): Promise<void> {
  const { sessions } = options;
  const { run, session: id } = journal.state;
  const runtime = await runtimeOf(await sessions.get(id), journal.state.definition, options);
  {
    await using lock = await sessions.lock(id, run);
    const session = await sessions.get(id);
    await sessions.record(id, { type: "session.run_started", data: { run } }, { once: true });
    await using network = createRunNetwork({ append: (events) => journal.append(events), state: () => journal.state });
    const sandbox = sandboxFor(journal, { session, runtime, network }, options);
    const signal = AbortSignal.any([options.signal, lock.lost]);
    let failed = false;
    try {
      const commits = createCommitWatch({ sinceMs: openSince(journal.state) });
      await driveIn(journal, { sandbox, runtime, session, network, commits }, { ...options, signal });
    } catch (error) {
      failed = true;
      throw error;
    } finally {
      // A run that fails before its first step would fail again and leave another sandbox each time, so we end its
      // sandbox, which is still empty. A driver that is asked to release the run leaves the sandbox to the next holder.
      const neverBegan = failed && !signal.aborted && journal.state.step === 0;
      if (journal.state.status === "ended" || neverBegan) await sandbox.end();
      else await sandbox.release();
    }
  }
  await leave(journal.state, { ...options, runtimes: [runtime] });
}

/** Returns when the oldest call began that has not ended, which an earlier driver may have left; otherwise now. */
function openSince({ tools }: RunState): number {
  const started = [...tools.values()].flatMap(({ status, startedAt }) =>
    status === "started" && startedAt !== null ? [Date.parse(startedAt)] : [],
  );
  return Math.min(Date.now(), ...started);
}

async function leave(state: RunState, options: DriveOptions & { runtimes: readonly Runtime[] }): Promise<void> {
  const { stateDir } = options.places;
  await leaveSession(state, { ...options, stateDir, runtimes: async () => options.runtimes });
}

/**
 * Returns the runtime of the session's first sandbox, which has the files. Throws `conflict` if the agent names another
 * runtime.
 */
async function runtimeOf(session: Session, definition: AgentDefinition, options: DriveOptions): Promise<Runtime> {
  const { runtime: requestedRuntime, ociRuntime } = definition.sandbox;
  if (session.runtime === null) return await options.runtime(requestedRuntime, ociRuntime);
  if (requestedRuntime !== undefined && requestedRuntime !== "auto" && requestedRuntime !== session.runtime) {
    throw new CaissonError(
      "conflict",
      `the files of the session ${session.id} are in the runtime ${session.runtime}, not in ${requestedRuntime}`,
      {
        hint: "Choose another session, or omit the runtime.",
      },
    );
  }
  return await options.runtime(session.runtime, ociRuntime);
}

const FILES_GONE =
  "The sandbox died, and its files could not be saved. This is a new sandbox with the files as they were last saved: when this run began, or when an earlier sandbox of this run died. Everything that changed since then is gone. Check the files before you continue.";

/** Throws `superseded` if another process has taken the lease. */
async function checkOwned(journal: OwnedJournal, log: Log): Promise<void> {
  const { stream, epoch } = journal.lease();
  const last = await log.lastLease(stream);
  if (last === null || last.epoch === epoch) return;
  throw new CaissonError("superseded", `the run ${journal.state.run} was taken over by another process`);
}

function sandboxFor(
  journal: OwnedJournal,
  { session, runtime, network }: { session: Session; runtime: Runtime; network: AttachedNetwork },
  options: DriveOptions,
): RunSandbox {
  const { definition, run } = journal.state;
  // Notices also go to the log, because followers of the run may be in another process.
  const notice = (text: string) => {
    options.notice?.(text);
    journal.note([{ type: "run.noticed", data: { text: text.slice(0, NOTICE_CHARACTERS_MAX) } }]);
  };
  return createRunSandbox({
    run,
    runtime,
    definition,
    session,
    sessions: options.sessions,
    crashpoint: options.crashpoint,
    removeRemains: options.removeRemains,
    places: options.places,
    notice,
    previous: () => journal.state.sandbox?.id ?? null,
    async onRestart(sandbox) {
      notice(
        `Another version of Caisson started sandbox ${sandbox}. It restarts with its files; its commands have ended, and /tmp is empty.`,
      );
      // Recorded before the restart: after a crash in between, the next driver must not repeat a call that had started.
      const data = { sandbox, runtime: runtime.name, why: "lost", files: "kept", restarted: true } as const;
      await journal.append([{ type: "run.sandboxed", data }]);
    },
    async onReady(sandbox, { why, files }) {
      // We do this first, because the previous holder may still be in the middle of a write.
      await sandbox.fence({ name: run, epoch: journal.lease().epoch });
      network.attach(sandbox);
      const record = async () => {
        if (journal.state.sandbox?.id === sandbox.id) return;
        const messages = files === "gone" ? [systemMessage(FILES_GONE)] : [];
        const fate = files === undefined ? {} : { files };
        await journal.append([{ type: "run.sandboxed", data: { sandbox: sandbox.id, runtime: runtime.name, why, ...fate } }, ...messages]);
      };
      const note = async () => {
        if (session.runtime === null) await options.sessions.update(session.id, { runtime: runtime.name });
      };
      // In either order: the next driver finds the sandbox by its label.
      const outcomes = await Promise.allSettled([record(), note()]);
      for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
      await options.prepare?.(session, { sandbox, runtime }, { notice });
    },
  });
}

/** Drives the run with a model and tools, in the run's sandbox. */
async function driveIn(journal: OwnedJournal, place: Workplace, options: DriveOptions): Promise<void> {
  const model = await options.model(journal.state.model);
  await using resources = new Resources();
  const sandbox = async () => restricted(await place.sandbox.get());
  const driveSubRun = (run: string) => driveOwned(run, { ...options, shared: place });
  const tools = await setUp(journal, { ...place, inside: sandbox, resources, driveSubRun }, options);
  if (tools === null) return;
  await driveRun({
    journal,
    model,
    tools,
    sandbox,
    onLost: async () => {
      // If another process took the run over, the sandbox only looks lost: it belongs to the new holder.
      await checkOwned(journal, options.log);
      return await place.sandbox.lost();
    },
    hooks: { before: options.hooks?.before ?? [], after: options.hooks?.after ?? [] },
    history: runHistory(options.log, journal.state.run),
    network: place.network,
    storeStep: options.shared === undefined ? createStepStore(journal, place, options) : async () => null,
    commits: place.commits,
    signal: options.signal,
    crashpoint: options.crashpoint,
  });
}
