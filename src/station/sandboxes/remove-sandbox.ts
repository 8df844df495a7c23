import { CaissonError } from "../../contract/error.ts";
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
  /** Whose connection is open, though nobody holds it. */
  resting: (id: SandboxId) => Promise<OwnedSandbox> | undefined;
}

/** What opening says of a sandbox that will not answer any more. */
const beyondAsking: ReadonlySet<string> = new Set(["lost", "internal", "protocol", "timeout", "unavailable"]);

/** By asking it, or by the host's own means. */
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
  // A sandbox that went away in the meantime is what was asked for.
  await store.remove(id);
}

/** Its record cannot be read, so every runtime is asked. */
export async function removeWithoutRecord(id: SandboxId, { store, runtimes }: RemoveContext): Promise<void> {
  const all = await Promise.all(runtimes.names.map((name) => runtimes.get(name)));
  await removeDamaged(store, all, id);
}
