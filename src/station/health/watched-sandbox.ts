import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { ignore } from "../../lib/failures.ts";
import type { HostView, Runtime } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import type { Restarted, Watched } from "./watched-subject.ts";

export interface WatchedSandboxOptions {
  record: SandboxRecord;
  run: string | null;
  runtime: () => Promise<Runtime>;
  /** Returns whether a process drives its run now. */
  isDriven: () => boolean;
}

/** How often we ask a responsive guest whether anything runs inside. */
const BUSY_LOOK_MS = 10_000;
const SNAPSHOT_NAME_PREFIX = "restart-";

/** Watches a sandbox over a separate connection: guests send heartbeats on each. */
export function watchSandbox(options: WatchedSandboxOptions): Watched {
  const { record, run } = options;
  const { id } = record;
  let handle: OwnedSandbox | null = null;
  let opening: Promise<void> | null = null;
  let asking = false;
  let closed = false;
  let busy = { is: false, atMs: Number.NEGATIVE_INFINITY };
  const open = () => {
    if (opening !== null || closed) return;
    opening = connect(options)
      .then(async (opened) => {
        if (opened === null) return;
        if (closed) return await opened.detach();
        handle = opened;
        void opened.closed.then(() => {
          if (handle === opened) handle = null;
        });
      })
      .finally(() => {
        opening = null;
      });
  };
  const lookForWork = async (sandbox: OwnedSandbox) => {
    if (performance.now() - busy.atMs < BUSY_LOOK_MS) return;
    busy = { ...busy, atMs: performance.now() };
    try {
      busy = { ...busy, is: (await sandbox.processes()).some(({ state }) => state === "running") };
    } catch (error) {
      // A sandbox that does not respond keeps its last state.
      if (!(error instanceof CaissonError)) throw error;
    }
  };
  const ask = async () => {
    if (handle === null) return open();
    if (asking) return;
    asking = true;
    await ignore(handle.ping(), "the watcher counts missing answers");
    asking = false;
  };
  open();
  return {
    subject: { kind: "sandbox", id },
    run,
    owner: record.spec.owner ?? LOCAL_OWNER,
    sign: () => handle?.lastHeardMs() ?? null,
    attend: () => void (handle !== null && lookForWork(handle)),
    prod: () => void ask(),
    isBusy: () => busy.is || options.isDriven(),
    // A sandbox that a user paused is frozen, which the host can see.
    excuse: () => null,
    look: async () => (await inspectHost(id, options)) ?? { condition: "unknown", stats: null, processes: [] },
    restart: async (about) => {
      const answered = about.condition === "dead" || about.condition === "stopped" ? false : await answers(options, about);
      if (answered) return { outcome: "recovered", text: "it responded when asked directly" };
      if (handle !== null) await ignore(handle.detach(), "it does not respond and is restarted");
      handle = null;
      const restarted = run === null ? await restartKept(id, options) : await handOver(id, options);
      open();
      return restarted;
    },
    async [Symbol.asyncDispose]() {
      // A connection that is still opening closes itself later: an unresponsive guest must not delay the end of the
      // station.
      closed = true;
      await handle?.detach();
      handle = null;
    },
  };
}

async function connect({ runtime, record }: WatchedSandboxOptions): Promise<OwnedSandbox | null> {
  try {
    return await (await runtime()).open(record.id);
  } catch (error) {
    // A dead, silent or removed sandbox does not respond either.
    if (error instanceof CaissonError) return null;
    throw error;
  }
}

async function inspectHost(id: SandboxId, { runtime }: WatchedSandboxOptions): Promise<HostView | null> {
  try {
    return (await (await runtime()).look?.(id)) ?? null;
  } catch (error) {
    if (error instanceof CaissonError) return null;
    throw error;
  }
}

/** Asks over a new connection, because only the existing one may be broken. */
async function answers(options: WatchedSandboxOptions, { graceMs, signal }: { graceMs: number; signal: AbortSignal }): Promise<boolean> {
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(graceMs)]);
  const asking = async (): Promise<boolean> => {
    const sandbox = await connect(options);
    if (sandbox === null) return false;
    try {
      await sandbox.ping();
      return true;
    } catch (error) {
      if (error instanceof CaissonError) return false;
      throw error;
    } finally {
      await sandbox.detach();
    }
  };
  const late = new Promise<boolean>((resolve) => deadline.addEventListener("abort", () => resolve(false), { once: true }));
  return await Promise.race([asking(), late]);
}

/** Ends the sandbox from the host: its run's driver notices, saves the files and continues in another sandbox. */
async function handOver(id: SandboxId, { runtime }: WatchedSandboxOptions): Promise<Restarted> {
  const { kill, name } = await runtime();
  if (kill === undefined) return { outcome: "impossible", text: `the runtime ${name} can end a sandbox only by removing it` };
  await kill(id);
  return { outcome: "handed_over", text: "it was ended; its run continues in another sandbox on the same files" };
}

async function restartKept(id: SandboxId, options: WatchedSandboxOptions): Promise<Restarted> {
  const runtime = await options.runtime();
  if (runtime.restart !== undefined) {
    await runtime.restart(id);
    const sandbox = await runtime.open(id);
    try {
      await sandbox.ping();
    } finally {
      await sandbox.detach();
    }
    return { outcome: "restarted", text: "it runs again on its own files; its commands have ended" };
  }
  const { salvage, name } = runtime;
  const cannot = `the runtime ${name} cannot restart a sandbox`;
  if (salvage === undefined) return { outcome: "impossible", text: cannot };
  const snapshot = await salvage(id, { name: `${SNAPSHOT_NAME_PREFIX}${id.slice(3)}` });
  return { outcome: "impossible", text: `${cannot}; its files are in the snapshot ${snapshot}` };
}
