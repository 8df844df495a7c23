import { hostname } from "node:os";
import { join } from "node:path";
import type { HostProcess, ProcessIdentity } from "../contract/process-identity.ts";
import { type Crashpoint, noCrash } from "../lib/crashpoint.ts";
import { defined } from "../lib/defined.ts";
import type { Log } from "../log/log.ts";
import { type AppendListener, observedLog } from "../log/observed-log.ts";
import { createSqliteLog } from "../log/sqlite/log.ts";
import { createDiskShares, type DiskShares, type DiskSharesOptions } from "../sandbox/disk-shares.ts";
import { isHolderGone } from "../sandbox/process-identity.ts";
import { type RemoveRemains, removeRemains } from "../sandbox/remove-remains.ts";
import type { Runtime } from "../sandbox/runtime.ts";
import { createStore, type Store } from "../sandbox/store.ts";
import type { GitOptions } from "../workspace/git/host-git.ts";
import { createSessionStore, type SessionStore } from "../workspace/sessions.ts";
import type { KnownPlaces } from "../workspace/wrong-place.ts";
import { type ClaimName, claimName } from "./names/claim-name.ts";

/** The parts that the whole station shares: its state folder with all records, this process, and the runtimes. */
export interface StationCore {
  readonly stateDir: string;
  readonly log: Log;
  /** Sandbox records. */
  readonly store: Store;
  readonly sessions: SessionStore;
  readonly disk: DiskShares;
  /** This process, and its name as a lease holder. */
  readonly identity: HostProcess;
  readonly holder: string;
  readonly alive: (process: ProcessIdentity) => boolean;
  readonly holderGone: (holder: string) => boolean;
  /** One runtime by name, and every runtime that may hold data of a session. */
  readonly runtime: (name: string | undefined, ociRuntime?: string) => Promise<Runtime>;
  readonly runtimes: () => Promise<readonly Runtime[]>;
  readonly removeRemains: RemoveRemains;
  readonly git: Pick<GitOptions, "path" | "home">;
  /** The folders that no sandbox may see. */
  readonly places: KnownPlaces;
  readonly claimName: ClaimName;
  readonly crashpoint: Crashpoint;
}

export interface StationCoreOptions extends Pick<StationCore, "runtime" | "runtimes" | "git"> {
  /** Must exist. */
  stateDir: string;
  crashpoint?: Crashpoint;
  /** The reserve, and the share of one owner. */
  disk?: Omit<DiskSharesOptions, "stateDir">;
  /** Called when this process waits for another one that holds the log. */
  onLogBusy?: (text: string) => void;
  /** Called for every event that this process appends. */
  onAppended?: AppendListener;
}

/** Opens the log, which the caller must close. */
export function createStationCore(options: StationCoreOptions): StationCore {
  const { stateDir, runtime, runtimes, git } = options;
  const stored = createSqliteLog({ path: join(stateDir, "log.db"), ...defined({ onBusy: options.onLogBusy }) });
  const log = options.onAppended === undefined ? stored : observedLog(stored, options.onAppended);
  const store = createStore({ stateDir });
  const identity = { ...store.thisProcess(), host: hostname() };
  const holder = JSON.stringify(identity);
  const alive = (process: ProcessIdentity) => store.isHolderAlive(process);
  const holderGone = (other: string) => isHolderGone({ identity, alive }, other);
  const sessions = createSessionStore({ stateDir, log, identity, alive });
  return {
    stateDir,
    log,
    store,
    sessions,
    disk: createDiskShares({ stateDir, ...options.disk }),
    identity,
    holder,
    alive,
    holderGone,
    runtime,
    runtimes,
    removeRemains: (of, id) => removeRemains(store, of, id),
    git,
    places: { home: git.home ?? "", stateDir },
    claimName: (name, claimed) => claimName(name, { log, store, sessions, holder, holderGone, ...claimed }),
    crashpoint: options.crashpoint ?? noCrash,
  };
}
