import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { loadConfig } from "../compose/load-config.ts";
import { composeStation, sandboxTools } from "../compose/station.ts";
import { createFakeRuntime } from "../runtimes/fake/runtime.ts";
import type { Resolver } from "../sandbox/resolver.ts";
import type { RuntimeSet } from "../sandbox/runtime-set.ts";
import type { CliContext } from "./context.ts";
import { runCli } from "./dispatch.ts";
import { createOutput } from "./terminal/output.ts";
import type { Interruption } from "./terminal/signals.ts";

/**
 * The command line in this process, with the fake runtime, a state folder and a folder to stand in for each test.
 * `onTerminal` runs a command line as on a terminal, and gives every byte that it wrote there.
 */
export function useTerminalCli() {
  let base: string;
  let context: CliContext;
  let openStation: () => ReturnType<typeof composeStation>;
  const interruption: Interruption = {
    signal: new AbortController().signal,
    received: () => null,
    first: new Promise(() => {}),
    second: new Promise(() => {}),
    next: () => new Promise(() => {}),
  };

  beforeEach(async () => {
    base = await mkdtemp(join(tmpdir(), "caisson-test-hostile-"));
    const stateDir = join(base, "state");
    await mkdir(join(base, "work"));
    await mkdir(stateDir);
    const fake = createFakeRuntime();
    const runtimes: RuntimeSet = {
      names: ["fake"],
      async get(name) {
        if (name === "fake") return fake;
        const { CaissonError } = await import("../contract/error.ts");
        throw new CaissonError("invalid", `there is no runtime ${name}`, { hint: `Not ${name}.` });
      },
      // It is to outlive a command, as real sandboxes do.
      async [Symbol.asyncDispose]() {},
    };
    const resolver: Resolver = {
      resolve: (name) => runtimes.get(name === "auto" ? "fake" : name),
      probe: () => fake.probe(),
      forget: async () => {},
    };
    const variable = () => undefined;
    const { config, file, sources } = await loadConfig({ stateDir, configDir: join(base, "config"), variable });
    const local = { cwd: join(base, "work"), home: base, path: process.env.PATH ?? "", stateDir, configDir: join(base, "config"), config };
    const parts = {
      ...local,
      configFile: file,
      version: "0",
      guestPath: join(base, "no-guest"),
      variable,
      runtimes,
      resolver,
      resolverFor: () => resolver,
    };
    openStation = () => composeStation({ ...parts, say: () => {}, startDetached: async () => {} });
    context = {
      ...local,
      version: "0",
      guestPath: join(base, "no-guest"),
      packageDir: base,
      configFile: file,
      configSources: sources,
      stdin: { isTTY: false, destroy() {}, async *[Symbol.asyncIterator]() {} } as unknown as CliContext["stdin"],
      stdout: undefined as never,
      stderr: undefined as never,
      interruption,
      variable,
      pager: undefined as never,
      startDetached: async () => {},
      station: undefined as never,
      removeOwnSandboxes: async () => {},
      serveNetwork: async () => ({ why: "gone" }),
      tools: sandboxTools,
      onEvent() {},
    };
  });
  afterEach(() => rm(base, { recursive: true, force: true }));

  async function onTerminal(argv: readonly string[]): Promise<{ code: number; text: string }> {
    const file = join(base, "screen");
    writeFileSync(file, "");
    const fd = openSync(file, "a");
    const terminal = { getWindowSize: () => [100, 30], on() {}, off() {} } as never;
    const output = createOutput({ fd, terminal });
    try {
      // Each command is a process of its own, and closes its station.
      const whole = {
        ...context,
        station: openStation(),
        stdout: output,
        stderr: output,
        pager: { open: async () => output, close: async () => {} },
      };
      const code = await runCli({
        version: "0",
        argv,
        isInteractive: false,
        stdout: output,
        stderr: output,
        interruption,
        context: async () => whole,
      });
      return { code, text: readFileSync(file, "utf8") };
    } finally {
      closeSync(fd);
    }
  }

  return { onTerminal, base: () => base, stateDir: () => context.stateDir };
}
