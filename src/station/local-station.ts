import type { Model } from "../agent/model/model.ts";
import type { AgentSource } from "../agent/rights/agent-source.ts";
import type { SandboxId } from "../contract/ids.ts";
import { defined } from "../lib/defined.ts";
import type { Station } from "../verbs/station.ts";
import { prepareWorkspace } from "../workspace/git/check-out.ts";
import type { MirrorOptions } from "../workspace/git/git-mirror.ts";
import { originOfStep } from "./forks/fork-files.ts";
import { type Rewinding, restoreRunFiles } from "./forks/restore-files.ts";
import { recoverRewinds } from "./forks/rewind-run.ts";
import { findRun } from "./names/find-run.ts";
import { withLookup } from "./names/with-lookup.ts";
import { createStationQueue, type StationQueue } from "./queue/station-queue.ts";
import { createRunVerbs } from "./run-verbs/run-verbs.ts";
import type { RunsOptions } from "./runs/drive.ts";
import { endRuns } from "./runs/end-runs.ts";
import { createRunDrives } from "./runs/run-drives.ts";
import { turnsOf } from "./runs/run-turns.ts";
import { createRuns, type Runs } from "./runs/runs.ts";
import type { ModelTape, StartRunOptions } from "./runs/start-run.ts";
import { findSnapshot } from "./sandboxes/snapshots.ts";
import { planFork } from "./sessions/fork-session.ts";
import { createSessionVerbs, forkSource, type SessionVerbsOptions } from "./sessions/session-verbs.ts";
import { createStationCore, type StationCore, type StationCoreOptions } from "./station-core.ts";
import { createLocalUploads, type LocalUploads } from "./uploads/local-uploads.ts";
import { usedUploads } from "./uploads/used-uploads.ts";
import { RUN_LABEL } from "./vocabulary/station-names.ts";

/** The runs and sessions of one state folder, on the embedded log. The CLI and the library build on it. */
export interface LocalStation extends AsyncDisposable {
  readonly core: StationCore;
  /** The engine that drives runs, and the queue in which they wait. */
  readonly runs: Runs;
  readonly queue: StationQueue;
  /** Reads, copies and changes sessions. */
  readonly sessionWork: SessionWork;
  readonly uploads: LocalUploads;
  /** Finishes the rewinds of runs whose process died. Otherwise it costs one listing of a folder. */
  recoverRewinds(): Promise<void>;
  /** The operations for users. The other members are for code that composes stations. */
  readonly verbs: Pick<Station, "runs" | "sessions" | "uploads">;
}

type ForkedFrom = Parameters<StartRunOptions["planFork"]>[0];
type SessionWork = Omit<SessionVerbsOptions, "store" | "endRuns">;

export interface LocalStationOptions extends StationCoreOptions {
  agents: AgentSource;
  model: (name: string, tape: ModelTape) => Promise<Model>;
  /** How repositories are fetched for each owner. If absent, only the machine's own user can fetch. */
  fetching?: { open: NonNullable<MirrorOptions["access"]>; check: StartRunOptions["checkFetched"] };
  /** Ends and removes a sandbox, even while a process uses it. */
  removeSandbox: (id: SandboxId) => Promise<void>;
  /** Starts a separate process that drives a run. */
  driveDetached: (run: string) => Promise<void>;
  settings: Pick<StartRunOptions, "defaultModel" | "keyedModel" | "limits" | "secretsOf" | "cwd"> & Pick<SessionVerbsOptions, "author">;
  hooks?: NonNullable<RunsOptions["hooks"]>;
  /** Receives the progress of fetching a repository, and notices about hidden files. */
  onProgress?: (line: string) => void;
}

export function createLocalStation(options: LocalStationOptions): LocalStation {
  const { agents, settings } = options;
  const core = createStationCore(options);
  const { log, store } = core;
  const model = (name: string, tape: ModelTape = {}) => options.model(name, tape);
  const fetching = { ...core, access: options.fetching?.open };
  const runs = createRuns({
    ...core,
    model,
    agent: async (name, owner) => agents.load(name, { secrets: await settings.secretsOf(owner) }),
    prepare: (session, place, { notice }) => prepareWorkspace(session, place, { ...fetching, owner: session.owner, onProgress: notice }),
    ...defined({ notice: options.onProgress, hooks: options.hooks }),
  });
  const drives = createRunDrives({ drive: runs.drive });
  const queue = createStationQueue({ ...core, drives, model, notice: options.onProgress });
  const endSandboxes = async (run: string) => {
    const { records } = await store.list();
    for (const { id } of records.filter(({ spec: config }) => config.labels[RUN_LABEL] === run)) await options.removeSandbox(id);
  };
  const uploads = createLocalUploads({ ...core, self: () => store.thisProcess(), used: () => usedUploads(core) });
  const sessionWork = {
    ...core,
    ...settings,
    runs,
    fetching,
    home: core.places.home,
    treeOfUpload: uploads.treeOf,
    checkFetched: options.fetching?.check,
    findSnapshot: async (word: string) => (await findSnapshot(await core.runtimes(), word)).snapshot.id,
    findRun: (word: string) => findRun(word, log),
    facts: (run: string) => runs.facts(run),
    turns: (run: string) => turnsOf(log, run),
    origin: (at: { run: string; step: number }) => originOfStep(at, core),
  };
  const forking = { planFork: async (from: ForkedFrom) => planFork(await forkSource(from.session, from, sessionWork), sessionWork) };
  const restoreFiles = (run: string, to: Rewinding) => restoreRunFiles(run, to, sessionWork);
  const rewinding = { ...sessionWork, ...forking, restoreFiles };
  const runVerbs = createRunVerbs({
    ...sessionWork,
    ...queue,
    ...forking,
    rewinding,
    agents,
    model,
    replay: { ...sessionWork, model },
    drives,
    driveDetached: options.driveDetached,
    endSandboxes,
  });
  const sessionVerbs = createSessionVerbs({
    ...sessionWork,
    endRuns: (session, request) => endRuns(session, request, { log, runs, endSandboxes }),
  });
  return {
    core,
    runs,
    queue,
    sessionWork,
    uploads,
    recoverRewinds: () => recoverRewinds({ ...rewinding, notice: options.onProgress ?? (() => undefined) }),
    verbs: { uploads, sessions: sessionVerbs, runs: withLookup("runs", runVerbs, { run: sessionWork.findRun }) },
    async [Symbol.asyncDispose]() {
      await queue[Symbol.asyncDispose]();
      await log[Symbol.asyncDispose]();
    },
  };
}
