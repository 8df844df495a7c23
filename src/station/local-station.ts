import { hostname } from "node:os";
import { join } from "node:path";
import type { Model } from "../agent/model/model.ts";
import type { AgentSource } from "../agent/rights/agent-source.ts";
import type { SandboxId } from "../contract/ids.ts";
import type { ProcessIdentity } from "../contract/process-identity.ts";
import { defined } from "../lib/defined.ts";
import type { Log } from "../log/log.ts";
import { type AppendListener, observedLog } from "../log/observed-log.ts";
import { createSqliteLog } from "../log/sqlite/log.ts";
import { createDiskShares, type DiskSharesOptions } from "../sandbox/disk-shares.ts";
import { removeRemains } from "../sandbox/remove-remains.ts";
import type { Runtime } from "../sandbox/runtime.ts";
import { createStore } from "../sandbox/store.ts";
import { prepareWorkspace } from "../workspace/git/check-out.ts";
import type { MirrorOptions } from "../workspace/git/git-mirror.ts";
import type { GitOptions } from "../workspace/git/host-git.ts";
import { createSessionStore, type SessionStore } from "../workspace/sessions.ts";
import { type Crashpoint, noCrash } from "./crashpoint.ts";
import { type ClaimName, claimName } from "./names/claim-name.ts";
import { findRun, withFoundRuns } from "./names/find-run.ts";
import { createStationQueue, type StationQueue } from "./queue/station-queue.ts";
import type { RunsOptions } from "./runs/drive.ts";
import { endRuns } from "./runs/end-runs.ts";
import { isGone } from "./runs/ownership.ts";
import { createRunDrives } from "./runs/run-drives.ts";
import { RUN_LABEL } from "./runs/run-spec.ts";
import { turnsOf } from "./runs/run-turns.ts";
import { createRunVerbs } from "./runs/run-verbs.ts";
import { createRuns, type Runs } from "./runs/runs.ts";
import type { ModelTape, StartRunOptions } from "./runs/start-run.ts";
import { findSnapshot } from "./sandboxes/snapshots.ts";
import { planFork } from "./sessions/fork-session.ts";
import { createSessionVerbs, forkSource, type SessionVerbsOptions } from "./sessions/session-verbs.ts";
import type { Station } from "./station.ts";
import { createLocalUploads, type LocalUploads } from "./uploads/local-uploads.ts";
import { usedUploads } from "./uploads/used-uploads.ts";

/** Runs and sessions of one state folder, on the embedded log: what the CLI and the library build on. */
export interface LocalStation extends AsyncDisposable {
  log: Log;
  runs: Runs;
  sessions: SessionStore;
  agents: AgentSource;
  stateDir: string;
  /** This process, and as the holder of a lease. */
  identity: RunsOptions["identity"];
  owner: string;
  alive: RunsOptions["alive"];
  ownerGone: (owner: string) => boolean;
  runtimes: () => Promise<readonly Runtime[]>;
  /** With what sessions are looked at, copied and written to. */
  viewing: Omit<SessionVerbsOptions, "store" | "endRuns">;
  crashpoint: Crashpoint;
  removeRemains: RunsOptions["removeRemains"];
  places: RunsOptions["places"];
  claimName: StartRunOptions["claimName"];
  drive: StationQueue["drive"];
  serve: StationQueue["serve"];
  /** Of a run in the queue something changed. */
  refreshQueued: (run: string) => Promise<void>;
  /** What users do. The rest is for those who put stations together. */
  verbs: Pick<Station, "runs" | "sessions" | "uploads">;
  uploads: LocalUploads;
  /** By what the changes of a session are read, besides. */
  reading: Pick<SessionVerbsOptions, "git" | "runtime">;
}

export function createLocalStation(options: {
  /** A folder that is there already. */
  stateDir: string;
  agents: AgentSource;
  runtime: RunsOptions["runtime"];
  model: (name: string, tape: ModelTape) => Promise<Model>;
  git: Pick<GitOptions, "path" | "home">;
  /** How repositories are fetched for each owner. Absent: for the machine's user alone. */
  fetching?: { open: NonNullable<MirrorOptions["access"]>; check: StartRunOptions["checkFetched"] };
  /** Every runtime in which a session may have left something. */
  runtimes: () => Promise<readonly Runtime[]>;
  /** Ends a sandbox and removes it, whatever its holder does. */
  removeSandbox: (id: SandboxId) => Promise<void>;
  /** Starts a process that drives a run, independent of this one. */
  driveDetached: (run: string) => Promise<void>;
  settings: Pick<StartRunOptions, "defaultModel" | "keyedModel" | "limits" | "secretsOf" | "cwd"> & Pick<SessionVerbsOptions, "author">;
  /** What stays free on the disk, and what is kept for one owner. */
  disk?: Omit<DiskSharesOptions, "stateDir">;
  hooks?: NonNullable<RunsOptions["hooks"]>;
  crashpoint?: Crashpoint;
  /** What fetching a repository says meanwhile, and what of a folder is hidden. */
  onProgress?: (line: string) => void;
  /** The log is held by another process, and is waited for. */
  onLogBusy?: (text: string) => void;
  /** Told of every event that this process appends. */
  onAppended?: AppendListener;
}): LocalStation {
  const { stateDir, agents, driveDetached } = options;
  const stored = createSqliteLog({ path: join(stateDir, "log.db"), ...(options.onLogBusy ? { onBusy: options.onLogBusy } : {}) });
  const log = options.onAppended === undefined ? stored : observedLog(stored, options.onAppended);
  const store = createStore({ stateDir });
  const identity = { ...store.ownerOf(), host: hostname() };
  const alive = (owner: ProcessIdentity) => store.ownerAlive(owner);
  const sessions = createSessionStore({ stateDir, log, identity, alive });
  const [owner, crashpoint] = [JSON.stringify(identity), options.crashpoint ?? noCrash];
  const ownerGone = (other: string) => isGone({ identity, alive }, other);
  const remove: RunsOptions["removeRemains"] = (runtime, id) => removeRemains(store, runtime, id);
  const places = { home: options.git.home ?? "", stateDir };
  const disk = createDiskShares({ stateDir, ...options.disk });
  const [access, holder] = [options.fetching?.open, owner];
  const fetching = { sessions, stateDir, git: options.git, log, access, holder, holderGone: ownerGone, disk };
  const model = (name: string, tape: ModelTape = {}) => options.model(name, tape);
  const claim: ClaimName = (name, claimed) => claimName(name, { log, store, sessions, holder: owner, ownerGone, ...claimed });
  const runs = createRuns({
    claimName: claim,
    log,
    sessions,
    identity,
    alive,
    crashpoint,
    removeRemains: remove,
    places,
    ...defined({ notice: options.onProgress }),
    runtime: options.runtime,
    model,
    agent: async (name, owner) => agents.load(name, { secrets: await options.settings.secretsOf(owner) }),
    ...(options.hooks ? { hooks: options.hooks } : {}),
    prepare: (session, place, { notice }) => prepareWorkspace(session, place, { ...fetching, owner: session.owner, onProgress: notice }),
  });
  const drives = createRunDrives({ drive: runs.drive });
  const served = createStationQueue({ log, store, stateDir, drives, crashpoint, model, owner, ownerGone, notice: options.onProgress });
  const endSandboxes = async (run: string) => {
    const { records } = await store.list();
    for (const { id } of records.filter(({ spec }) => spec.labels[RUN_LABEL] === run)) await options.removeSandbox(id);
  };
  const used = () => usedUploads({ stateDir, store, sessions, runtimes: options.runtimes });
  const uploads = createLocalUploads({ stateDir, disk, self: () => store.ownerOf(), alive, used });
  const common = {
    treeOfUpload: uploads.treeOf,
    claimName: claim,
    log,
    runs,
    sessions,
    stateDir,
    home: places.home,
    findSnapshot: async (word: string) => (await findSnapshot(await options.runtimes(), word)).snapshot.id,
    identity,
    alive,
    runtimes: options.runtimes,
    crashpoint,
    checkFetched: options.fetching?.check,
    ...options.settings,
  };
  const viewing = { ...common, ...runsByWord(log, runs), runtime: options.runtime, git: options.git };
  const planned: StartRunOptions["planFork"] = async (from) => planFork(await forkSource(from.session, from, viewing), viewing);
  const verbs = {
    uploads,
    runs: withFoundRuns(
      createRunVerbs({ ...common, ...served, planFork: planned, agents, model, drives, driveDetached, endSandboxes }),
      log,
    ),
    sessions: createSessionVerbs({
      ...viewing,
      store,
      endRuns: (session, asked) => endRuns(session, asked, { log, runs, endSandboxes }),
    }),
  };
  return {
    verbs,
    reading: { git: options.git, runtime: options.runtime },
    uploads,
    claimName: claim,
    log,
    runs,
    sessions,
    agents,
    stateDir,
    places,
    identity,
    owner,
    alive,
    ownerGone,
    runtimes: options.runtimes,
    viewing,
    crashpoint,
    removeRemains: remove,
    drive: served.drive,
    serve: served.serve,
    refreshQueued: async (run) => await served.queue()?.refresh(run),
    async [Symbol.asyncDispose]() {
      await served[Symbol.asyncDispose]();
      await log[Symbol.asyncDispose]();
    },
  };
}

/** What sessions ask about the runs in them. */
function runsByWord(log: Log, runs: Runs) {
  return {
    findRun: (word: string) => findRun(word, log),
    facts: (run: string) => runs.facts(run),
    turns: (run: string) => turnsOf(log, run),
  };
}
