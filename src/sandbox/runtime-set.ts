import { CaissonError } from "../contract/error.ts";
import type { Runtime, RuntimeContext } from "./runtime.ts";

/** Every runtime of one composition, each made on first use, so that nobody pays for one that is not asked for. */
export interface RuntimeSet extends AsyncDisposable {
  /** Strongest first, as `auto` tries them; `host` is last and never chosen by `auto`. */
  readonly names: readonly string[];
  /** The same object for the same name. Throws `invalid` for an unknown name. */
  get(name: string): Promise<Runtime>;
}

export type RuntimeFactory = (context: RuntimeContext) => Promise<Runtime>;

export function createRuntimeSet(options: { context: RuntimeContext; factories: Readonly<Record<string, RuntimeFactory>> }): RuntimeSet {
  const { context, factories } = options;
  const names = Object.keys(factories);
  const made = new Map<string, Promise<Runtime>>();
  return {
    names,
    async get(name) {
      const factory = Object.hasOwn(factories, name) ? factories[name] : undefined;
      if (factory === undefined) {
        throw new CaissonError("invalid", `there is no runtime ${JSON.stringify(name)}`, {
          hint: `Choose one of: auto, ${names.join(", ")}.`,
          details: { runtimes: names },
        });
      }
      const before = made.get(name);
      if (before !== undefined) return before;
      const fresh = factory(context);
      made.set(name, fresh);
      return fresh;
    },
    async [Symbol.asyncDispose]() {
      const runtimes = await Promise.allSettled(made.values());
      await Promise.all(runtimes.map((runtime) => (runtime.status === "fulfilled" ? runtime.value[Symbol.asyncDispose]() : undefined)));
    },
  };
}
