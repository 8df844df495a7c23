import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import { ignore } from "../../lib/failures.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";

/** How long an idle connection stays open, and how many may; the oldest closes first. */
export const restLimits = { ms: 2_000, max: 64 } as const;

/** The sandboxes that this process holds. All handles of a sandbox share one connection to its guest. */
export interface SandboxHolds {
  /** Registers a sandbox that was just created; the returned handle belongs to its creator. */
  adopt(sandbox: OwnedSandbox): OwnedSandbox;
  /** Returns a sandbox that this process already has open. */
  peek(id: SandboxId): Promise<OwnedSandbox> | undefined;
  /** Returns a sandbox with no holder here, but with an open connection. */
  resting(id: SandboxId): Promise<OwnedSandbox> | undefined;
  /** Opens a handle. Throws as `open`; on abort, throws `cancelled` at once and leaves nothing open. */
  hold(id: SandboxId, options?: { signal?: AbortSignal }): Promise<OwnedSandbox>;
  /**
   * Starts keeping the connection of a kept sandbox without a network open for a moment after its last holder releases
   * it, so that a client with consecutive requests opens it once. Disposing stops that and closes idle connections.
   */
  keepIdle(): AsyncDisposable;
}

interface Holding {
  readonly sandbox: Promise<OwnedSandbox>;
  /** True if this process created the sandbox: then it also has to end or release it. */
  readonly made: boolean;
  /** The stamp of the record when the connection was opened; null if the connection must not idle. */
  readonly stamp: Promise<string | null> | null;
  holders: number;
  rest: NodeJS.Timeout | null;
  /** Whether the record was unchanged when the connection last left the idle state. */
  isCurrent: Promise<boolean>;
}

export interface SandboxHoldsOptions {
  open: (id: SandboxId) => Promise<OwnedSandbox>;
  /** Returns a stamp that changes with the sandbox's record: other processes may pause, resume or restart it. */
  stampOf: (id: SandboxId) => Promise<string | null>;
}

export function createSandboxHolds(options: SandboxHoldsOptions): SandboxHolds {
  const holdings = new Map<SandboxId, Holding>();
  /** Idle connections with the functions that close them, oldest first. */
  const atRest = new Map<Holding, () => Promise<void>>();
  let mayRest = false;
  const wake = (holding: Holding) => {
    if (holding.rest === null) return false;
    clearTimeout(holding.rest);
    holding.rest = null;
    return atRest.delete(holding);
  };
  const forget = (id: SandboxId, holding: Holding) => {
    wake(holding);
    if (holdings.get(id) === holding) holdings.delete(id);
  };
  const begin = (id: SandboxId, sandbox: () => Promise<OwnedSandbox>, isOwn: boolean): Holding => {
    // Read before opening, so that a change during the opening is noticed later.
    const stamp = mayRest ? options.stampOf(id) : null;
    const opening = isOwn || stamp === null ? sandbox() : stamp.then(sandbox);
    const holding: Holding = { sandbox: opening, made: isOwn, stamp, holders: 0, rest: null, isCurrent: Promise.resolve(true) };
    holdings.set(id, holding);
    // If the sandbox ends or cannot be opened, the next caller opens it again.
    opening
      .then(({ closed }) => closed)
      .then(
        () => forget(id, holding),
        () => forget(id, holding),
      );
    return holding;
  };
  const leave = async (id: SandboxId, holding: Holding, sandbox: OwnedSandbox): Promise<void> => {
    holding.holders -= 1;
    if (holding.holders > 0) return;
    if (mayRest && holding.stamp !== null && holdings.get(id) === holding && canRest(sandbox)) return rest(id, holding, sandbox);
    forget(id, holding);
    await (holding.made ? leaveMade(sandbox) : sandbox.detach());
  };
  const rest = async (id: SandboxId, holding: Holding, sandbox: OwnedSandbox): Promise<void> => {
    const end = async () => {
      forget(id, holding);
      await endRest(sandbox, holding);
    };
    holding.rest = setTimeout(() => void end(), restLimits.ms).unref();
    atRest.set(holding, end);
    const [oldest] = atRest.size > restLimits.max ? atRest.values() : [];
    await oldest?.();
  };
  /** Returns an up-to-date connection, already counted as held. */
  const current = async (id: SandboxId): Promise<{ holding: Holding; sandbox: OwnedSandbox }> => {
    const holding = holdings.get(id) ?? begin(id, () => options.open(id), false);
    if (wake(holding)) holding.isCurrent = isUnchanged(holding, options.stampOf(id));
    holding.holders += 1;
    const [sandbox, isCurrent] = await Promise.all([holding.sandbox, holding.isCurrent]);
    if (isCurrent) return { holding, sandbox };
    forget(id, holding);
    holding.holders -= 1;
    if (holding.holders === 0) await endRest(sandbox, holding);
    return current(id);
  };
  const take = (id: SandboxId, holding: Holding, sandbox: OwnedSandbox) => handleOf(sandbox, () => leave(id, holding, sandbox));
  return {
    adopt(sandbox) {
      const holding = begin(sandbox.id, () => Promise.resolve(sandbox), true);
      holding.holders = 1;
      return take(sandbox.id, holding, sandbox);
    },
    peek: (id) => holdings.get(id)?.sandbox,
    resting(id) {
      const holding = holdings.get(id);
      return holding?.rest === null ? undefined : holding?.sandbox;
    },
    async hold(id, { signal } = {}) {
      const holdingOn = current(id).then(({ holding, sandbox }) => take(id, holding, sandbox));
      if (signal === undefined) return holdingOn;
      const cancelled = Promise.withResolvers<never>();
      const cancel = () => cancelled.reject(new CaissonError("cancelled", "interrupted while opening a sandbox"));
      signal.addEventListener("abort", cancel);
      if (signal.aborted) cancel();
      try {
        return await Promise.race([cancelled.promise, holdingOn]);
      } catch (error) {
        const releasing = holdingOn.then((handle) => handle.release());
        void ignore(releasing, "the first error is thrown");
        throw error;
      } finally {
        signal.removeEventListener("abort", cancel);
      }
    },
    keepIdle() {
      mayRest = true;
      return {
        async [Symbol.asyncDispose]() {
          mayRest = false;
          await Promise.all([...atRest.values()].map((end) => end()));
        },
      };
    },
  };
}

/** True if the sandbox has no network to hand over and does not end with its holder. */
function canRest({ info }: OwnedSandbox): boolean {
  return info.keep && info.network.mode === "none";
}

async function isUnchanged({ stamp }: Holding, now: Promise<string | null>): Promise<boolean> {
  const [before, after] = await Promise.all([stamp, now]);
  return before !== null && before === after;
}

async function endRest(sandbox: OwnedSandbox, { made: isOwn }: Holding): Promise<void> {
  await ignore(isOwn ? sandbox.release() : sandbox.detach(), "without another process to serve its network, it stays held");
}

/**
 * Releases a sandbox that this process created. Removes it if no process can serve its network, since it has no other
 * holder.
 */
async function leaveMade(sandbox: OwnedSandbox): Promise<void> {
  if (!sandbox.info.keep) return sandbox.destroy();
  try {
    await sandbox.release();
  } catch (error) {
    await sandbox.destroy();
    throw error;
  }
}

/** Returns a handle that shares everything but its own end with the other handles. */
function handleOf(sandbox: OwnedSandbox, leave: () => Promise<void>): OwnedSandbox {
  let leaving: Promise<void> | undefined;
  const release = () => (leaving ??= leave());
  const own: Partial<OwnedSandbox> = { release, detach: release, [Symbol.asyncDispose]: release };
  const refuse = () => Promise.reject(new CaissonError("gone", `this handle of sandbox ${sandbox.id} was released`));
  return new Proxy(sandbox, {
    get(_shared, name) {
      if (name in own) return Reflect.get(own, name);
      const value: unknown = Reflect.get(sandbox, name);
      return leaving !== undefined && typeof value === "function" ? refuse : value;
    },
  });
}
