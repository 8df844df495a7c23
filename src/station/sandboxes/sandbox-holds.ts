import { CaissonError } from "../../contract/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";

/** The sandboxes that this process holds: one connection to each guest, shared by as many handles as are asked for. */
export interface SandboxHolds {
  /** Counts a sandbox that was just made; the handle is the maker's. */
  adopt(made: OwnedSandbox): OwnedSandbox;
  /** One that this process holds anyway. */
  peek(id: SandboxId): Promise<OwnedSandbox> | undefined;
  /** Throws what opening throws; on abort `cancelled` at once, and nothing stays open. */
  hold(id: SandboxId, options?: { signal?: AbortSignal }): Promise<OwnedSandbox>;
}

interface Holding {
  readonly sandbox: Promise<OwnedSandbox>;
  /** Whether this process made it: then it is also this process that ends it, or leaves it to itself. */
  readonly made: boolean;
  holders: number;
}

export function createSandboxHolds(options: { open: (id: SandboxId) => Promise<OwnedSandbox> }): SandboxHolds {
  const holdings = new Map<SandboxId, Holding>();
  const forget = (id: SandboxId, holding: Holding) => {
    if (holdings.get(id) === holding) holdings.delete(id);
  };
  const begin = (id: SandboxId, sandbox: Promise<OwnedSandbox>, made: boolean): Holding => {
    const holding = { sandbox, made, holders: 0 };
    holdings.set(id, holding);
    // A sandbox that is gone, or could not be opened, is opened anew by whoever asks next.
    sandbox
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
    forget(id, holding);
    await (holding.made ? leaveMade(sandbox) : sandbox.detach());
  };
  const take = (id: SandboxId, holding: Holding, sandbox: OwnedSandbox) => handleOf(sandbox, () => leave(id, holding, sandbox));
  return {
    adopt(made) {
      const holding = begin(made.id, Promise.resolve(made), true);
      holding.holders = 1;
      return take(made.id, holding, made);
    },
    peek: (id) => holdings.get(id)?.sandbox,
    async hold(id, { signal } = {}) {
      const holding = holdings.get(id) ?? begin(id, options.open(id), false);
      holding.holders += 1;
      const holdingOn = holding.sandbox.then((sandbox) => take(id, holding, sandbox));
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
  };
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
