import { CaissonError } from "../contract/error/error.ts";
import type { SandboxId } from "../contract/ids.ts";
import type { ProcessIdentity } from "../contract/process-identity.ts";
import { ignore } from "../lib/failures.ts";
import type { Runtime } from "./runtime.ts";
import { ifRemoved, type Store } from "./store.ts";

/** Removes a dead sandbox, even a kept one, with everything that remains of it. */
export type RemoveRemains = (runtime: Runtime, id: SandboxId) => Promise<void>;

/** A holder that cannot be alive: no boot has this id. */
const noProcess: ProcessIdentity = { pid: 1, startTicks: 0, bootId: "none" };

/**
 * Removes a sandbox whose record cannot be read. Its runtime is unknown, so every runtime ends what it has under this
 * id; if a runtime's engine is dead, its next sweep does so.
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
 * Removes a dead sandbox or its remains. A sandbox created with `keep` that can no longer be opened has no holder, so
 * its record gets a dead one, and the runtime's sweep removes it.
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
  const record = (await ignore(store.read(id), "the sweep reports a damaged record")) ?? null;
  if (record !== null) await store.write({ ...record, state: "completing", owner: noProcess }).catch(ifRemoved);
  await runtime.sweep();
}
