import { hostname } from "node:os";
import { endRun } from "../../agent/end-run.ts";
import type { HookFunction } from "../../agent/hooks.ts";
import { systemMessage } from "../../agent/journal.ts";
import { driveRun } from "../../agent/loop.ts";
import type { Model } from "../../agent/model/model.ts";
import type { RunState } from "../../agent/run-state.ts";
import type { AgentDefinition } from "../../contract/agent.ts";
import { CaissonError } from "../../contract/error.ts";
import type { HostProcess, ProcessIdentity } from "../../contract/process-identity.ts";
import { NOTICE_CHARACTERS_MAX } from "../../contract/run-event.ts";
import type { RunDriver } from "../../contract/run-queue.ts";
import type { Session } from "../../contract/session.ts";
import { defined } from "../../lib/defined.ts";
import { Resources } from "../../lib/resources.ts";
import type { Log } from "../../log/log.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { type OwnedSandbox, restricted } from "../../sandbox/sandbox.ts";
import { ifUnusable, type SessionStore } from "../../workspace/sessions.ts";
import type { KnownPlaces } from "../../workspace/wrong-place.ts";
import type { Crashpoint } from "../crashpoint.ts";
import type { ClaimName } from "../names/claim-name.ts";
import { leaveSession } from "../sessions/remove-session.ts";
import { type AttachedNetwork, createRunNetwork } from "./attached-network.ts";
import { finishRun } from "./finish-runs.ts";
import { headOfRun } from "./head-of-run.ts";
import { foldRun, type OwnedJournal, openJournal } from "./owned-journal.ts";
import { acquireRun, isGone } from "./ownership.ts";
import { runHistory } from "./run-history.ts";
import { createRunSandbox, type RemoveRemains, type RunSandbox } from "./run-sandbox.ts";
import type { Runs } from "./runs.ts";
import { setUp } from "./set-up.ts";

export interface RunsOptions {
  log: Log;
  sessions: SessionStore;
  /** The runtime an agent asked for, or the strongest there is; with this OCI runtime where one is given. */
  runtime: (name: string | undefined, ociRuntime?: string) => Promise<Runtime>;
  /** What of the user's folders is never mounted. */
  places: KnownPlaces;
  model: (name: string) => Promise<Model>;
  /** Sub-agents by name, with the secrets that an owner may use. */
  agent: (name: string, owner: string) => Promise<AgentDefinition>;
  identity: HostProcess;
  alive: (owner: ProcessIdentity) => boolean;
  crashpoint: Crashpoint;
  claimName: ClaimName;
  hooks?: { before?: readonly HookFunction[]; after?: readonly HookFunction[] };
  removeRemains: RemoveRemains;
  /** Told what is worth a word to the user. */
  notice?: (text: string) => void;
  /** Prepares a workspace that is not there yet, such as a git check-out; called once for each new sandbox. */
  prepare?: (
    session: Session,
    place: { sandbox: OwnedSandbox; runtime: Runtime },
    told: { notice: (text: string) => void },
  ) => Promise<void>;
}

/** Where a run works. */
export interface Workplace {
  sandbox: RunSandbox;
  session: Session;
  network: AttachedNetwork;
}

export interface DriveOptions extends RunsOptions {
  owner: string;
  runs: Runs;
  signal: AbortSignal;
  /** As what this process drives it; default `caller`. */
  driver?: RunDriver;
  /** The driver tries again after a retryable failure, even before the first step. */
  isRetried?: boolean;
  /** A sub-run works in its parent's sandbox. */
  shared?: Workplace;
}

/** Becomes the run's owner and drives it to its end; see `Runs.drive`. */
export async function driveOwned(run: string, options: DriveOptions): Promise<RunState> {
  const { log, owner } = options;
  if ((await headOfRun(log, run)).facts.status === "ended") return (await foldRun(log, run)).state;
  await using ownership = await acquireRun(run, { log, owner, ownerGone: (other) => isGone(options, other) });
  const signal = AbortSignal.any([options.signal, ownership.lost]);
  await using journal = await openJournal({ log, run, lease: () => ownership.lease, crashpoint: options.crashpoint, signal });
  // Somebody else may have ended it before it was ours.
  if (journal.state.status === "ended") return journal.state;
  const { pid } = options.identity;
  const claim = { owner, epoch: ownership.lease.epoch, pid, host: hostname(), measured: true, ...defined({ driver: options.driver }) };
  await journal.append([{ type: "run.claimed", data: claim }]);
  if (journal.state.stopRequested !== null) await endStopped(journal, { ...options, signal });
  else if (!(await options.sessions.has(journal.state.session))) await endWithoutSession(journal, options);
  else if (options.shared) await driveIn(journal, options.shared, { ...options, signal });
  else await driveInSession(journal, { ...options, signal });
  return journal.state;
}

/** A run that was told to stop while nobody drove it needs no model, no lock and no new sandbox to end. */
async function endStopped(journal: OwnedJournal, options: DriveOptions): Promise<void> {
  const network = options.shared?.network ?? { settle: async () => undefined };
  await endRun({ journal, network }, { reason: "cancelled", text: `Stopped by ${journal.state.stopRequested}.` });
  if (options.shared) return;
  const session = await options.sessions.get(journal.state.session).catch(ifUnusable);
  const name = session?.runtime ?? journal.state.sandbox?.runtime;
  // No sandbox was ever made for it.
  if (name === undefined || name === null) return;
  await finishRun(journal.state, { ...options, runtime: await options.runtime(name) });
}

/** Its files are gone, and so is what it could go on with. */
async function endWithoutSession(journal: OwnedJournal, options: DriveOptions): Promise<void> {
  const network = options.shared?.network ?? { settle: async () => undefined };
  await endRun({ journal, network }, { reason: "cancelled", text: `Its session ${journal.state.session} was removed.` });
}

/** Holds the session's lock while the run works there; whoever takes it away ends the work. */
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
      await driveIn(journal, { sandbox, session, network }, { ...options, signal });
    } catch (error) {
      failed = true;
      throw error;
    } finally {
      // What failed before the first step would fail again, each time with another sandbox left; nothing is in it yet.
      // Who was told to let go leaves it to the next owner.
      const neverBegan = failed && !signal.aborted && journal.state.step === 0;
      if (journal.state.status === "ended" || neverBegan) await sandbox.end();
      else await sandbox.release();
    }
  }
  await leaveSession(journal.state, { sessions, runtimes: [runtime] });
}

/**
 * A session's files are where its first sandbox was. Throws `conflict` when the agent asks for another place by name.
 */
async function runtimeOf(session: Session, definition: AgentDefinition, options: DriveOptions): Promise<Runtime> {
  const { runtime: asked, ociRuntime } = definition.sandbox;
  if (session.runtime === null) return await options.runtime(asked, ociRuntime);
  if (asked !== undefined && asked !== "auto" && asked !== session.runtime) {
    throw new CaissonError("conflict", `the files of the session ${session.id} are in the runtime ${session.runtime}, not in ${asked}`, {
      hint: "Choose another session, or leave the runtime out.",
    });
  }
  return await options.runtime(session.runtime, ociRuntime);
}

const FILES_GONE =
  "The sandbox died, and its files could not be saved. This is a new one, with the files as they were when they were last saved: when this run began, or when a sandbox of it died before. Everything that was changed since then is gone. Look at what is there before you go on.";

/** Throws `superseded` when another process owns the run by now. */
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
  // Whoever follows the run may not be this process.
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
        `Another version of Caisson started sandbox ${sandbox}. It is restarted on its files; its commands have ended, and /tmp is empty.`,
      );
      // Before the restart: after a crash in between, the next driver must not repeat a call that had begun.
      const data = { sandbox, runtime: runtime.name, why: "lost", files: "kept", restarted: true } as const;
      await journal.append([{ type: "run.sandboxed", data }]);
    },
    async onReady(sandbox, { why, files }) {
      // Before anything else: an owner that this one took over from may still stand in the middle of a write.
      await sandbox.fence({ name: run, epoch: journal.lease().epoch });
      network.attach(sandbox);
      if (journal.state.sandbox?.id !== sandbox.id) {
        const told = files === "gone" ? [systemMessage(FILES_GONE)] : [];
        const fate = files === undefined ? {} : { files };
        await journal.append([{ type: "run.sandboxed", data: { sandbox: sandbox.id, runtime: runtime.name, why, ...fate } }, ...told]);
      }
      if (session.runtime === null) await options.sessions.update(session.id, { runtime: runtime.name });
      await options.prepare?.(session, { sandbox, runtime }, { notice });
    },
  });
}

/** With a model and tools, in the run's sandbox. */
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
      // To one who was taken over from, the sandbox looks lost; it is the next owner's.
      await checkOwned(journal, options.log);
      return await place.sandbox.lost();
    },
    hooks: { before: options.hooks?.before ?? [], after: options.hooks?.after ?? [] },
    history: runHistory(options.log, journal.state.run),
    network: place.network,
    signal: options.signal,
    crashpoint: options.crashpoint,
  });
}
