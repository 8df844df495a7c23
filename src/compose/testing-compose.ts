import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { StationConfig } from "../contract/config/config.ts";
import { CaissonError } from "../contract/error/error.ts";
import type { SandboxConfig } from "../contract/sandbox/sandbox.ts";
import type { Program } from "../runtimes/fake/program.ts";
import { createFakeRuntime } from "../runtimes/fake/runtime.ts";
import type { Resolver } from "../sandbox/resolver.ts";
import type { Runtime } from "../sandbox/runtime.ts";
import type { RuntimeSet } from "../sandbox/runtime-set.ts";
import type { ForkOptions, OwnedSandbox } from "../sandbox/sandbox.ts";
import { parseSandboxConfig } from "../sandbox/sandbox-config.ts";
import { createStore, type Store } from "../sandbox/store.ts";
import { loadConfig } from "./load-config.ts";
import { openLocalStation } from "./local-parts.ts";
import { composeStation, type LocalVerbs, type StationParts } from "./station.ts";

/**
 * Everything that a station with the fake runtime needs, in one test folder with a state folder and a current folder.
 */
export async function fakeStationParts(
  base: string,
  {
    programs = {},
    env = {},
    station = {},
    ...options
  }: {
    programs?: Readonly<Record<string, Program>>;
    env?: Readonly<Record<string, string>>;
    /** Overrides of the defaults. */
    station?: Partial<StationConfig>;
  } & Pick<StationParts, "onAppended"> = {},
) {
  const stateDir = join(base, "state");
  const configDir = join(base, "config");
  const cwd = join(base, "work");
  await mkdir(cwd, { recursive: true });
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  const memory = createFakeRuntime({ programs });
  const fake = withRecords(memory, createStore({ stateDir }));
  const runtimes: RuntimeSet = {
    names: ["fake"],
    async get(name) {
      if (name === "fake") return fake;
      throw new CaissonError("invalid", `there is no runtime ${name}`, { hint: `Not ${name}.` });
    },
    probe: () => fake.probe(),
    // Outlives a command, as real sandboxes do.
    async [Symbol.asyncDispose]() {},
  };
  const resolver: Resolver = {
    resolve: (name) => runtimes.get(name === "auto" ? "fake" : name),
    probe: (name) => runtimes.probe(name),
    forget: async () => {},
  };
  const variable = (name: string) => env[name];
  const { config: loaded, file: configFile, sources: configSources } = await loadConfig({ stateDir, configDir, variable });
  const config = { ...loaded, station: { ...loaded.station, ...station } };
  const local = { cwd, home: base, path: process.env.PATH ?? "", stateDir, configDir, config, configFile, variable };
  const guestPath = join(base, "no-guest");
  const startDetached = async () => {
    throw new CaissonError("unavailable", "no separate process is started here");
  };
  const openStation = (): LocalVerbs =>
    composeStation({
      ...options,
      ...local,
      version: "0",
      guestPath,
      runtimes,
      resolver,
      resolverFor: () => resolver,
      say: () => {},
      startDetached,
    });
  /** The log and runs below the verbs, as in a serving station. */
  const openLocal = async () =>
    openLocalStation({
      ...local,
      runtimes,
      resolver,
      resolverFor: () => resolver,
      say: () => {},
      startDetached,
      removeSandbox: async (id) => (await fake.open(id)).destroy(),
    });
  return { local, configSources, guestPath, openStation, openLocal, runtimes, fake: memory };
}

/**
 * Writes records of sandboxes: the fake runtime keeps them only in memory, but a station finds them by their records.
 */
function withRecords(runtime: Runtime, store: Store): Runtime {
  const wrap = (sandbox: OwnedSandbox): OwnedSandbox => {
    const destroy = async () => {
      await sandbox.destroy();
      await store.remove(sandbox.id);
    };
    return Object.assign(Object.create(sandbox) as OwnedSandbox, {
      destroy,
      async fork(options?: ForkOptions) {
        const forked = await sandbox.fork(options);
        const { template, keep, labels, owner } = forked.info;
        return record(forked, parseSandboxConfig({ template, keep, labels, owner }));
      },
    });
  };
  const record = async (sandbox: OwnedSandbox, sandboxConfig: SandboxConfig): Promise<OwnedSandbox> => {
    const { id, state, createdAt, limits, warnings } = sandbox.info;
    await store.write({ id, runtime: runtime.name, state, createdAt, spec: sandboxConfig, limits, warnings, owner: null, details: null });
    return wrap(sandbox);
  };
  return Object.assign(Object.create(runtime) as Runtime, {
    create: async (...args: Parameters<Runtime["create"]>) => record(await runtime.create(...args), args[0]),
    open: async (...args: Parameters<Runtime["open"]>) => wrap(await runtime.open(...args)),
  });
}
