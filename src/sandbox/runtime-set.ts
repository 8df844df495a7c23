import { CaissonError } from "../contract/error/error.ts";
import type { Probe, Runtime, RuntimeContext } from "./runtime.ts";

/** The runtimes of one composition. Each is created on first use, so unused ones cost nothing. */
export interface RuntimeSet extends AsyncDisposable {
  /** Strongest first, as `auto` tries them; `host` is last and never chosen by `auto`. */
  readonly names: readonly string[];
  /** Returns the same object for the same name. Throws `invalid` for an unknown name, `unavailable` after disposal. */
  get(name: string): Promise<Runtime>;
  /** Starts a real sandbox in the runtime. Disposal waits until the probe has removed it. */
  probe(name: string): Promise<Probe>;
}

export type RuntimeFactory = (context: RuntimeContext) => Promise<Runtime>;

export function createRuntimeSet(options: { context: RuntimeContext; factories: Readonly<Record<string, RuntimeFactory>> }): RuntimeSet {
  const { context, factories } = options;
  const names = Object.keys(factories);
  const instances = new Map<string, Promise<Runtime>>();
  const probes = new Set<Promise<Probe>>();
  let hasEnded = false;
  const get = async (name: string) => {
    const factory = Object.hasOwn(factories, name) ? factories[name] : undefined;
    if (factory === undefined) {
      throw new CaissonError("invalid", `there is no runtime ${JSON.stringify(name)}`, {
        hint: `Choose one of: auto, ${names.join(", ")}.`,
        details: { runtimes: names },
      });
    }
    const before = instances.get(name);
    if (before !== undefined) return before;
    if (hasEnded) throw new CaissonError("unavailable", `the runtime ${name} cannot start: the program is ending`);
    const fresh = factory(context);
    instances.set(name, fresh);
    return fresh;
  };
  return {
    names,
    get,
    async probe(name) {
      const runtime = await get(name);
      if (hasEnded) throw new CaissonError("unavailable", `cannot probe the runtime ${name}: the program is ending`);
      const probe = runtime.probe();
      probes.add(probe);
      try {
        return await probe;
      } finally {
        probes.delete(probe);
      }
    },
    async [Symbol.asyncDispose]() {
      hasEnded = true;
      await Promise.allSettled(probes);
      const runtimes = await Promise.allSettled(instances.values());
      await Promise.all(runtimes.map((runtime) => (runtime.status === "fulfilled" ? runtime.value[Symbol.asyncDispose]() : undefined)));
    },
  };
}
