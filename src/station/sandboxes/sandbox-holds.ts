import { CaissonError } from "../../contract/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";

/** How long a connection rests before it is given up, and how many rest at most; the oldest goes first. */
export const restLimits = { ms: 2_000, max: 64 } as const;

/** The sandboxes that this process holds: one connection to each guest, shared by as many handles as are asked for. */
export interface SandboxHolds {
  /** Counts a sandbox that was just made; the handle is the maker's. */
  adopt(made: OwnedSandbox): OwnedSandbox;
  /** One that this process holds anyway. */
  peek(id: SandboxId): Promise<OwnedSandbox> | undefined;
  /** One that nobody here holds, whose connection is still open. */
  resting(id: SandboxId): Promise<OwnedSandbox> | undefined;
  /** Throws what opening throws; on abort `cancelled` at once, and nothing stays open. */
  hold(id: SandboxId, options?: { signal?: AbortSignal }): Promise<OwnedSandbox>;
  /**
   * From now on the connection of a kept sandbox without a network rests for a moment after its last holder let go:
   * whoever makes one request after another opens it once. Disposed of, nothing rests, and nothing will.
   */
  letRest(): AsyncDisposable;
}

interface Holding {
  readonly sandbox: Promise<OwnedSandbox>;
  /** Whether this process made it: then it is also this process that ends it, or leaves it to itself. */
  readonly made: boolean;
  /** Of the record that the connection was opened by; null where it is not to rest. */
  readonly stamp: Promise<string | null> | null;
  holders: number;
  rest: NodeJS.Timeout | null;
  /** Whether the record was still the same when it was last woken. */
  isCurrent: Promise<boolean>;
}

export interface SandboxHoldsOptions {
  open: (id: SandboxId) => Promise<OwnedSandbox>;
  /** Changes with the sandbox's record: other processes may pause, resume or restart it. */
  stampOf: (id: SandboxId) => Promise<string | null>;
}

export function createSandboxHolds(options: SandboxHoldsOptions): SandboxHolds {
  const holdings = new Map<SandboxId, Holding>();
  /** The oldest first. */
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
  const begin = (id: SandboxId, sandbox: () => Promise<OwnedSandbox>, made: boolean): Holding => {
    // Taken before it is opened: what changes meanwhile must not look as if it had been seen.
    const stamp = mayRest ? options.stampOf(id) : null;
    const opening = made || stamp === null ? sandbox() : stamp.then(sandbox);
    const holding: Holding = { sandbox: opening, made, stamp, holders: 0, rest: null, isCurrent: Promise.resolve(true) };
    holdings.set(id, holding);
    // A sandbox that is gone, or could not be opened, is opened anew by whoever asks next.
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
  /** Counted already. */
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
    adopt(made) {
      const holding = begin(made.id, () => Promise.resolve(made), true);
      holding.holders = 1;
      return take(made.id, holding, made);
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
      const cancel = () => cancelled.reject(new CaissonError("cancelled", "interrupted while a sandbox was opened"));
      if (signal.aborted) cancel();
      signal.addEventListener("abort", cancel);
      try {
        return await Promise.race([cancelled.promise, holdingOn]);
      } catch (error) {
        holdingOn.then((handle) => handle.release()).catch(() => {});
        throw error;
      } finally {
        signal.removeEventListener("abort", cancel);
      }
    },
    letRest() {
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

/** Where nothing is to be handed over, and nothing ends with its holder. */
function canRest({ info }: OwnedSandbox): boolean {
  return info.keep && info.network.mode === "none";
}

async function isUnchanged({ stamp }: Holding, now: Promise<string | null>): Promise<boolean> {
  const [before, after] = await Promise.all([stamp, now]);
  return before !== null && before === after;
}

/** Nobody waits for it. One that cannot be let go, as nobody else would serve its network by now, is held on to. */
async function endRest(sandbox: OwnedSandbox, { made }: Holding): Promise<void> {
  await (made ? sandbox.release() : sandbox.detach()).catch(() => {});
}

/** One that cannot stay, because nothing would serve its network, is removed: nobody else holds it. */
async function leaveMade(sandbox: OwnedSandbox): Promise<void> {
  if (!sandbox.info.keep) return sandbox.destroy();
  try {
    await sandbox.release();
  } catch (error) {
    await sandbox.destroy();
    throw error;
  }
}

/** Everything but its own end is the shared sandbox's. */
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
