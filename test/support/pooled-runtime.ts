import type { SandboxConfig } from "../../src/contract/sandbox/sandbox.ts";
import type { OciRuntime } from "../../src/runtimes/oci/runtime.ts";
import type { OwnedSandbox } from "../../src/sandbox/sandbox.ts";

/** How often a config is requested until a sandbox of its kind waits. */
const TRIES_MAX = 4;

/** The path does not exist; protecting it takes a new root. */
const NOWHERE = "/nowhere/caisson-test";

/**
 * Returns a runtime whose sandboxes all waited and got a new root, if the config permits that; `counts` says how many did.
 * A kind that does not wait yet does after it was requested.
 */
export function pooledRuntime(runtime: OciRuntime): { runtime: OciRuntime; counts: { pooled: number; fresh: number } } {
  const counts = { pooled: 0, fresh: 0 };
  const isPooled = async (create: () => Promise<OwnedSandbox>) => {
    await runtime.warm();
    const before = runtime.pooled?.().ready ?? 0;
    const sandbox = await create();
    return { sandbox, pooled: (runtime.pooled?.().ready ?? 0) > before };
  };
  const create = async (config: SandboxConfig, options?: { signal?: AbortSignal }): Promise<OwnedSandbox> => {
    const changed = { ...config, readOnlyPaths: [...config.readOnlyPaths, NOWHERE] };
    for (let tried = 1; ; tried++) {
      const { sandbox, pooled } = await isPooled(() => runtime.create(changed, options));
      if (pooled) counts.pooled += 1;
      else if (tried === TRIES_MAX) counts.fresh += 1;
      if (pooled || tried === TRIES_MAX) return sandbox;
      await sandbox.destroy();
    }
  };
  const own = { create };
  const wrapped = new Proxy(runtime, {
    get: (target, name) => (name in own ? own[name as keyof typeof own] : Reflect.get(target, name, target)),
  });
  return { runtime: wrapped, counts };
}
