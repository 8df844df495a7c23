import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import { removeDamaged, removeRemains } from "../../sandbox/remove-remains.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { RuntimeSet } from "../../sandbox/runtime-set.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { Store } from "../../sandbox/store.ts";

export interface RemoveContext {
  store: Store;
  runtimes: RuntimeSet;
  runtimeOf: (id: SandboxId) => Promise<Runtime>;
  /** Returns a sandbox with an open connection but no holder. */
  resting: (id: SandboxId) => Promise<OwnedSandbox> | undefined;
}

/** Errors of `open` after which a sandbox will never answer again. */
const beyondAsking: ReadonlySet<string> = new Set(["lost", "internal", "protocol", "timeout", "unavailable"]);

/** Removes a sandbox through its guest if possible, and otherwise from the host. */
export async function removeSandbox(id: SandboxId, context: RemoveContext): Promise<void> {
  const { store } = context;
  const runtime = await context.runtimeOf(id).catch((error: unknown) => {
    if (error instanceof CaissonError && error.code === "internal") return null;
    throw error;
  });
  if (runtime === null) return removeWithoutRecord(id, context);
  try {
    await (await (context.resting(id) ?? runtime.open(id))).destroy();
  } catch (error) {
    if (!(error instanceof CaissonError) || !beyondAsking.has(error.code)) throw error;
    await removeRemains(store, runtime, id);
  }
  // If the sandbox disappeared in the meantime, the request is fulfilled.
  await store.remove(id);
}

/** Removes a sandbox with an unreadable record. Any runtime may have created it, so we try all of them. */
export async function removeWithoutRecord(id: SandboxId, { store, runtimes }: RemoveContext): Promise<void> {
  const all = await Promise.all(runtimes.names.map((name) => runtimes.get(name)));
  await removeDamaged(store, all, id);
}
