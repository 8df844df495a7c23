import { CaissonError, type ErrorCode } from "../../../contract/error/error.ts";
import type { Capabilities, SandboxConfig, SandboxInfo } from "../../../contract/sandbox/sandbox.ts";
import { ignore } from "../../../lib/failures.ts";
import type { Runtime } from "../../../sandbox/runtime.ts";
import type { OwnedSandbox, Process, SpawnOptions } from "../../../sandbox/sandbox.ts";

/**
 * A single defect in an otherwise correct runtime. A conformance test proves something only if a defect makes it fail.
 */
export interface Defect {
  /** The defect, as a phrase. */
  what: string;
  capabilities?(good: Capabilities): Capabilities;
  config?(config: SandboxConfig): SandboxConfig;
  /** The sandbox's reported info, right or wrong. */
  info?(good: SandboxInfo, config: SandboxConfig): SandboxInfo;
  spawn?(options: SpawnOptions): SpawnOptions;
  runtime?(good: Runtime): Partial<Runtime>;
  sandbox?(good: OwnedSandbox): Partial<OwnedSandbox>;
  process?(good: Process, options: SpawnOptions | null): Partial<Process>;
}

/** Adds a defect to a runtime. `close` removes every sandbox that was created, even those that the defect hid. */
export function breakRuntime(good: Runtime, defect: Defect): { runtime: Runtime; close(): Promise<void> } {
  const sandboxes = new Set<OwnedSandbox>();
  const making = new Set<Promise<OwnedSandbox>>();
  const wrapProcess = (process: Process, options: SpawnOptions | null) => replaceMembers(process, defect.process?.(process, options) ?? {});
  const wrapSandbox = (sandbox: OwnedSandbox, config?: SandboxConfig): OwnedSandbox => {
    sandboxes.add(sandbox);
    const inner = replaceMembers(sandbox, {
      get info() {
        return config === undefined ? sandbox.info : (defect.info?.(sandbox.info, config) ?? sandbox.info);
      },
      async spawn(options) {
        return wrapProcess(await sandbox.spawn(defect.spawn?.(options) ?? options), options);
      },
      async attach(ref, from) {
        return wrapProcess(await sandbox.attach(ref, from), null);
      },
      async fork(options) {
        return wrapSandbox(await sandbox.fork(options));
      },
    });
    return replaceMembers(inner, defect.sandbox?.(inner) ?? {});
  };
  const inner = replaceMembers(good, {
    async capabilities() {
      const capabilities = await good.capabilities();
      return defect.capabilities?.(capabilities) ?? capabilities;
    },
    async create(config, options) {
      const creating = good.create(defect.config?.(config) ?? config, options).then((sandbox) => wrapSandbox(sandbox, config));
      making.add(creating);
      return await creating;
    },
    async open(id) {
      return wrapSandbox(await good.open(id));
    },
  });
  return {
    runtime: replaceMembers(inner, defect.runtime?.(inner) ?? {}),
    async close() {
      await Promise.allSettled(making);
      for (const sandbox of sandboxes) await ignore(sandbox.destroy(), "a broken sandbox may fail to end");
    },
  };
}

/** Returns an object with some members replaced. The others keep their own `this`, and getters stay live. */
function replaceMembers<T extends object>(below: T, above: Partial<T>): T {
  return new Proxy(below, {
    get(_target, key) {
      const source: object = key in above ? above : below;
      const value: unknown = Reflect.get(source, key, source);
      // A closure, not `bind`, because `await using` accepts no bound function.
      return typeof value === "function" ? (...args: unknown[]) => Reflect.apply(value, source, args) as unknown : value;
    },
  });
}

export const MIB = 1024 * 1024;

/** Makes a call, and returns another value if it fails with the code. */
export async function forgiving<T>(code: ErrorCode, call: () => Promise<T>, instead: () => T | Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof CaissonError && error.code === code) return instead();
    throw error;
  }
}

export function notWhatItIs(): never {
  throw new CaissonError("internal", "something went wrong");
}

export async function* nothing(): AsyncGenerator<never> {}

export function noop(): Promise<void> {
  return Promise.resolve();
}

export function withLimit(name: keyof Capabilities["limits"], value: boolean) {
  return (good: Capabilities): Capabilities => ({ ...good, limits: { ...good.limits, [name]: value } });
}
