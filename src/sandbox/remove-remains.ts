import { CaissonError } from "../contract/error.ts";
import type { SandboxId } from "../contract/ids.ts";
import type { ProcessIdentity } from "../contract/process-identity.ts";
import type { Runtime } from "./runtime.ts";
import { ifRemoved, type Store } from "./store.ts";

/** An owner who cannot be alive: no boot has this name. */
const nobody: ProcessIdentity = { pid: 1, startTicks: 0, bootId: "none" };

/**
 * Removes a sandbox whose record cannot be read. Which runtime made it is not known any more, so each ends what it has
 * under that id; of one whose engine is dead, the next sweep finds it.
 */
export async function removeDamaged(store: Store, runtimes: readonly Runtime[], id: SandboxId): Promise<void> {
  for (const runtime of runtimes) {
    await runtime.discard(id).catch((error: unknown) => {
      if (!(error instanceof CaissonError && error.code === "unavailable")) throw error;
    });
  }
  await store.remove(id);
}

/**
 * Removes a sandbox that died, or what is left of it. One that was to be kept is nobody's once it cannot be opened any
 * more: its record is made to say so, and the runtime's own sweep takes it away.
 */
export async function removeRemains(store: Store, runtime: Runtime, id: SandboxId): Promise<void> {
  const sandbox = await runtime.open(id).catch((error: unknown) => {
    if (error instanceof CaissonError) return null;
    throw error;
  });
  if (sandbox) {
    await sandbox.destroy();
    return;
  }
  const record = await store.read(id).catch(() => null);
  if (record !== null) await store.write({ ...record, state: "completing", owner: nobody }).catch(ifRemoved);
  await runtime.sweep();
}
