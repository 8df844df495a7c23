import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import type { CliContext } from "../../src/cli/context.ts";
import { runCli } from "../../src/cli/dispatch.ts";
import { createOutput } from "../../src/cli/terminal/output.ts";
import type { Interruption } from "../../src/cli/terminal/signals.ts";
import { createContexts } from "../../src/compose/contexts.ts";
import type { LocalVerbs } from "../../src/compose/station.ts";
import { fakeStationParts } from "../../src/compose/testing-compose.ts";
import { sandboxTools } from "../../src/compose/tools.ts";
import { CaissonError } from "../../src/contract/error/error.ts";
import { memoryFolder } from "./memory-folder.ts";

/**
 * Sets up the command line in this process, with the fake runtime, a state folder and a current folder for each test.
 * `onTerminal` runs a command line as if on a terminal, and returns every byte that it wrote there.
 */
export function useTerminalCli() {
  let base: string;
  let context: CliContext;
  let openStation: () => LocalVerbs;
  const interruption: Interruption = {
    signal: new AbortController().signal,
    received: () => null,
    first: new Promise(() => {}),
    second: new Promise(() => {}),
    since: () => new Promise(() => {}),
  };

  beforeEach(async () => {
    base = await mkdtemp(join(memoryFolder(), "caisson-test-hostile-"));
    const parts = await fakeStationParts(base);
    openStation = parts.openStation;
    context = {
      ...parts.local,
      version: "0",
      guestPath: parts.guestPath,
      packageDir: base,
      configSources: parts.configSources,
      stdin: stdinOf(""),
      stdout: undefined as never,
      stderr: undefined as never,
      interruption,
      pager: undefined as never,
      startDetached: async () => {},
      target: { kind: "here" },
      station: undefined as never,
      removeOwnSandboxes: async () => {},
      serveNetwork: async () => ({ why: "gone" }),
      serveMcp: notServed,
      server: {
        start: notServed,
        startDetached: notServed,
        reach: async () => null,
        reachChosen: async () => null,
        createCode: async () => null,
      },
      contexts: createContexts({ configDir: parts.local.configDir }),
      tools: sandboxTools,
      refuseWrongPlace: async () => {},
      onEvent() {},
    };
  });
  afterEach(() => rm(base, { recursive: true, force: true }));

  async function notServed(): Promise<never> {
    throw new CaissonError("unavailable", "nothing is served here");
  }

  async function onTerminal(argv: readonly string[], { input = "" }: { input?: string } = {}): Promise<{ code: number; text: string }> {
    const file = join(base, "screen");
    writeFileSync(file, "");
    const fd = openSync(file, "a");
    const terminal = { getWindowSize: () => [100, 30], on() {}, off() {} } as never;
    const output = createOutput({ fd, terminal });
    try {
      // In reality each command is a separate process, and closes its station.
      const whole = {
        ...context,
        station: openStation(),
        stdin: stdinOf(input),
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

function stdinOf(text: string): CliContext["stdin"] {
  const chunks = async function* () {
    if (text !== "") yield Buffer.from(text);
  };
  return { isTTY: false, destroy() {}, [Symbol.asyncIterator]: chunks } as unknown as CliContext["stdin"];
}
