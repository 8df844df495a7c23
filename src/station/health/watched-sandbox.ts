import { CaissonError } from "../../contract/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import { LOCAL_OWNER } from "../../contract/owner.ts";
import type { HostView, Runtime } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import type { Restarted, Watched } from "./watched.ts";

export interface WatchedSandboxOptions {
  record: SandboxRecord;
  run: string | null;
  runtime: () => Promise<Runtime>;
  /** Whether somebody drives its run now. */
  isDriven: () => boolean;
}

/** Asked of the guest this often whether anything runs, as long as it answers. */
const BUSY_LOOK_MS = 10_000;
const SNAPSHOT_NAME_PREFIX = "restart-";

/**
 * A sandbox, over a connection of the station's own: guests beat by themselves on each. What the connection hears is
 * the sign of life.
 */
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
      // One that does not answer is busy or not as it was.
      if (!(error instanceof CaissonError)) throw error;
    }
  };
  const ask = async () => {
    if (handle === null) return open();
    if (asking) return;
    asking = true;
    try {
      await handle.ping();
    } catch {
      // Silence is what is counted.
    } finally {
      asking = false;
    }
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
    // One that somebody paused is frozen, and the host sees that.
    excuse: () => null,
    look: async () => (await lookAt(id, options)) ?? { condition: "unknown", stats: null, processes: [] },
    restart: async (about) => {
      const answered = about.condition === "dead" || about.condition === "stopped" ? false : await answers(options, about);
      if (answered) return { outcome: "recovered", text: "it answered when it was asked" };
      await handle?.detach().catch(() => undefined);
      handle = null;
      const restarted = run === null ? await restartKept(id, options) : await handOver(id, options);
      open();
      return restarted;
    },
    async [Symbol.asyncDispose]() {
      // What is being opened lets go by itself: a guest that does not answer keeps no station from its end.
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
    // Dead, silent or just removed: in each case there is no sign of life.
    if (error instanceof CaissonError) return null;
    throw error;
  }
}

async function lookAt(id: SandboxId, { runtime }: WatchedSandboxOptions): Promise<HostView | null> {
  try {
    return (await (await runtime()).look?.(id)) ?? null;
  } catch (error) {
    if (error instanceof CaissonError) return null;
    throw error;
  }
}

/** Asks over a connection of its own: the one that is there may be all that is broken. */
async function answers(options: WatchedSandboxOptions, { graceMs, signal }: { graceMs: number; signal: AbortSignal }): Promise<boolean> {
  const given = AbortSignal.any([signal, AbortSignal.timeout(graceMs)]);
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
  const late = new Promise<boolean>((resolve) => given.addEventListener("abort", () => resolve(false), { once: true }));
  return await Promise.race([asking(), late]);
}

/** Ended by the host's own means: its run's driver sees that, saves the files and goes on in another sandbox. */
async function handOver(id: SandboxId, { runtime }: WatchedSandboxOptions): Promise<Restarted> {
  const { kill, name } = await runtime();
  if (kill === undefined) return { outcome: "impossible", text: `the runtime ${name} can end a sandbox only by removing it` };
  await kill(id);
  return { outcome: "handed_over", text: "it was ended; its run goes on in another sandbox, on the same files" };
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
    return { outcome: "restarted", text: "it runs again on its own files; the commands in it are gone" };
  }
  const { salvage, name } = runtime;
  const cannot = `the runtime ${name} cannot start a sandbox again`;
  if (salvage === undefined) return { outcome: "impossible", text: cannot };
  const snapshot = await salvage(id, { name: `${SNAPSHOT_NAME_PREFIX}${id.slice(3)}` });
  return { outcome: "impossible", text: `${cannot}; its files are in the snapshot ${snapshot}` };
}
