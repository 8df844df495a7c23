import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { SandboxId } from "../../contract/ids.ts";
import { HostProcess } from "../../contract/process-identity.ts";
import type { RunFacts } from "../../contract/run/run-facts.ts";
import { ABSENT, ifErrno, ignore, jsonOrNull } from "../../lib/failures.ts";
import type { Log } from "../../log/log.ts";
import type { RuntimeSet } from "../../sandbox/runtime-set.ts";
import type { SandboxRecord, Store } from "../../sandbox/store.ts";
import { RUN_LABEL, runOf, runStream } from "../vocabulary/station-names.ts";
import { watchDriver } from "./watched-driver.ts";
import { watchSandbox } from "./watched-sandbox.ts";
import type { Watched } from "./watched-subject.ts";

/** The most open runs to consider; the last changed come first. */
const RUNS_MAX = 1000;
const SANDBOXES_MAX = 5000;

export interface FindWatchedOptions {
  stateDir: string;
  store: Store;
  runtimes: RuntimeSet;
  log: Log;
  identity: HostProcess;
  /** Drives a run in this process. */
  drive: (run: string) => void;
}

/** Finds everything to watch: sandboxes that outlive a command, and the drivers of runs in other processes. */
export function createFindWatched(options: FindWatchedOptions): () => Promise<ReadonlyMap<string, () => Watched>> {
  const { store, runtimes } = options;
  const records = new Map<SandboxId, SandboxRecord | null>();
  const driven = new Map<string, DrivenRun>();
  const watchKept = (record: SandboxRecord): Watched => {
    const run = record.spec.labels[RUN_LABEL] ?? null;
    const isDriven = () => run !== null && driven.has(run);
    const watched = watchSandbox({ record, run, runtime: () => runtimes.get(record.runtime), isDriven });
    // The next driver of a run finds its sandbox, and replaces it if it does not respond.
    return run === null ? watched : withRestart(watched, () => (isDriven() ? watched.restart : null));
  };
  return async () => {
    const found = new Map<string, () => Watched>();
    await findDriven(driven, options);
    for (const [run, { driver, owner }] of driven) {
      if (driver === null) continue;
      const newest = () => driven.get(run)?.newest ?? "";
      const takeOver = async () => options.drive(run);
      found.set(`driver ${run} ${driver.pid}`, () => watchDriver({ run, owner, driver, newest, takeOver }));
    }
    await findKept(records, { ...options, store });
    for (const [id, record] of records) if (record !== null) found.set(`sandbox ${id}`, () => watchKept(record));
    return found;
  };
}

function withRestart(watched: Watched, restart: () => Watched["restart"]): Watched {
  return Object.defineProperty(Object.create(watched) as Watched, "restart", { get: restart });
}

/** Reads each record once: the relevant parts of it do not change. */
async function findKept(records: Map<SandboxId, SandboxRecord | null>, { stateDir, store, runtimes }: FindWatchedOptions): Promise<void> {
  const names = new Set((await ifErrno(readdir(join(stateDir, "sandboxes")), ABSENT, [])).slice(0, SANDBOXES_MAX));
  for (const id of records.keys()) if (!names.has(id)) records.delete(id);
  for (const name of names) {
    if (records.has(name) || !SandboxId.safeParse(name).success) continue;
    const record = (await ignore(store.read(name), "a damaged record is listed as such, and cannot be watched")) ?? null;
    // A sandbox that is still being created or not assigned yet is read again next time.
    if (record === null || record.state === "creating" || !record.spec.keep) continue;
    records.set(name, runtimes.names.includes(record.runtime) ? record : null);
  }
}

interface DrivenRun {
  owner: string;
  /** Null if this process drives the run. */
  driver: HostProcess | null;
  newest: string;
}

async function findDriven(driven: Map<string, DrivenRun>, { log, identity, store }: FindWatchedOptions): Promise<void> {
  const { heads } = await log.heads({ prefix: runStream(""), open: true, limit: RUNS_MAX });
  const before = new Set(driven.keys());
  for (const { stream, head } of heads) {
    const lease = await log.lastLease(stream);
    const holder = HostProcess.safeParse(lease === null ? null : jsonOrNull(lease.holder));
    // A run without a driver waits for `resume`; processes on other machines are not visible from here.
    if (lease === null || !holder.success || holder.data.host !== identity.host || !store.isHolderAlive(holder.data)) continue;
    const isOwn = holder.data.pid === identity.pid && holder.data.startTicks === identity.startTicks;
    driven.set(runOf(stream), {
      owner: (head as unknown as RunFacts).owner,
      driver: isOwn ? null : holder.data,
      newest: `${lease.epoch} ${lease.expiresAtMs}`,
    });
    before.delete(runOf(stream));
  }
  for (const run of before) driven.delete(run);
}
