import { CaissonError, type ErrorCode } from "../../../contract/error.ts";
import type { Capabilities, SandboxInfo, SandboxSpec } from "../../../contract/sandbox.ts";
import type { Runtime } from "../../../sandbox/runtime.ts";
import type { OwnedSandbox, Process, SpawnOptions } from "../../../sandbox/sandbox.ts";

/**
 * One thing that is wrong with an otherwise good runtime. A conformance test is worth something when a defect makes it
 * fail.
 */
export interface Defect {
  /** What is wrong, as a phrase. */
  what: string;
  capabilities?(good: Capabilities): Capabilities;
  spec?(asked: SandboxSpec): SandboxSpec;
  /** What the sandbox says of itself, right or wrong. */
  info?(good: SandboxInfo, asked: SandboxSpec): SandboxInfo;
  spawn?(asked: SpawnOptions): SpawnOptions;
  runtime?(good: Runtime): Partial<Runtime>;
  sandbox?(good: OwnedSandbox): Partial<OwnedSandbox>;
  process?(good: Process, asked: SpawnOptions | null): Partial<Process>;
}

/** A runtime with the defect built in. `close` removes every sandbox that was made, also those the defect hid. */
export function breakRuntime(good: Runtime, defect: Defect): { runtime: Runtime; close(): Promise<void> } {
  const made = new Set<OwnedSandbox>();
  const making = new Set<Promise<OwnedSandbox>>();
  const wrapProcess = (process: Process, asked: SpawnOptions | null) => layered(process, defect.process?.(process, asked) ?? {});
  const wrapSandbox = (sandbox: OwnedSandbox, asked?: SandboxSpec): OwnedSandbox => {
    made.add(sandbox);
    const inner = layered(sandbox, {
      get info() {
        return asked === undefined ? sandbox.info : (defect.info?.(sandbox.info, asked) ?? sandbox.info);
      },
      async spawn(options) {
        return wrapProcess(await sandbox.spawn(defect.spawn?.(options) ?? options), options);
      },
      async attach(ref, from) {
        return wrapProcess(await sandbox.attach(ref, from), null);
      },
      async fork(asked) {
        return wrapSandbox(await sandbox.fork(asked));
      },
    });
    return layered(inner, defect.sandbox?.(inner) ?? {});
  };
  const inner = layered(good, {
    async capabilities() {
      const capabilities = await good.capabilities();
      return defect.capabilities?.(capabilities) ?? capabilities;
    },
    async create(spec, options) {
      const creating = good.create(defect.spec?.(spec) ?? spec, options).then((sandbox) => wrapSandbox(sandbox, spec));
      making.add(creating);
      return await creating;
    },
    async open(id) {
      return wrapSandbox(await good.open(id));
    },
  });
  return {
    runtime: layered(inner, defect.runtime?.(inner) ?? {}),
    async close() {
      await Promise.allSettled(making);
      for (const sandbox of made) await sandbox.destroy().catch(() => undefined);
    },
  };
}

/** The object with some members replaced. The rest keeps its own `this`, and getters stay live. */
function layered<T extends object>(below: T, above: Partial<T>): T {
  return new Proxy(below, {
    get(_target, key) {
      const source: object = key in above ? above : below;
      const value: unknown = Reflect.get(source, key, source);
      // A closure, not `bind`: `await using` takes no bound function.
      return typeof value === "function" ? (...args: unknown[]) => Reflect.apply(value, source, args) as unknown : value;
    },
  });
}

export const MIB = 1024 * 1024;

/** Runs a call and gives another value where it fails with the code. */
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
