import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { memoryFolder } from "../../../test/support/memory-folder.ts";
import type { TodoList } from "../../contract/run/run.ts";
import type { RunEvent } from "../../contract/run/run-event.ts";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import { createFakeRuntime } from "../../runtimes/fake/runtime.ts";
import { createHostRuntime } from "../../runtimes/host/runtime.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { type OwnedSandbox, restricted } from "../../sandbox/sandbox.ts";
import type { Tool, ToolContext, ToolResult } from "../tool.ts";

/** A sandbox to try tools in, as a run would have it. */
export interface Workbench extends AsyncDisposable {
  sandbox: OwnedSandbox;
  context(options?: Partial<ToolContext>): ToolContext;
  /** Checks the arguments as the loop does, then runs the tool. Each call has a unique ID. */
  use<Arguments>(tool: Tool<Arguments>, args: unknown, options?: Partial<ToolContext>): Promise<ToolResult>;
  put(path: string, content: string | Uint8Array, options?: { mode?: number }): Promise<void>;
  read(path: string): Promise<string>;
  todo: { now: TodoList };
  events: RunEvent[];
}

export async function createWorkbench(
  options: { real?: boolean; change?: (sandbox: OwnedSandbox) => OwnedSandbox } = {},
): Promise<Workbench> {
  const stateDir = await mkdtemp(join(memoryFolder(), "caisson-test-tools-"));
  const guestPath = join(import.meta.dirname, "../../../guest/build/caisson-guest");
  const runtime: Runtime = options.real ? createHostRuntime({ stateDir, guestPath }) : createFakeRuntime();
  const originalSandbox = await runtime.create(SandboxConfig.parse({}));
  const sandbox = options.change?.(originalSandbox) ?? originalSandbox;
  const todo: { now: TodoList } = { now: [] };
  const events: RunEvent[] = [];
  const run = `run_${Math.random()
    .toString(36)
    .slice(2, 8)
    .replaceAll(/[0189]/g, "a")}`;
  let calls = 0;
  const context = (overrides: Partial<ToolContext> = {}): ToolContext => {
    calls += 1;
    const call = overrides.call ?? `t${calls}.1`;
    return {
      sandbox: restricted(sandbox),
      call,
      ref: (suffix) => `${run}:${call}${suffix ? `:${suffix}` : ""}`,
      signal: new AbortController().signal,
      onOutput: () => undefined,
      resumed: false,
      todo: {
        get: () => todo.now,
        set: async (list) => {
          todo.now = list;
        },
      },
      history: {
        async *events() {
          for (const [at, event] of events.entries()) yield { seq: at + 1, event };
        },
      },
      network: {
        fetch: async () => ({ denied: { reason: "no_network", text: "This sandbox has no network." } }),
        allow: async (rule) => rule,
        takeDenials: () => [],
      },
      ...overrides,
    };
  };
  const absolute = (path: string) => (path.startsWith("/") ? path : `/workspace/${path}`);
  return {
    sandbox,
    context,
    todo,
    events,
    async use(tool, args, overrides) {
      const parsed = tool.parameters.safeParse(args);
      if (!parsed.success) throw new TypeError(z.prettifyError(parsed.error));
      return await tool.run(parsed.data, context(overrides));
    },
    async put(path, content, { mode } = {}) {
      await sandbox.writeFile(absolute(path), Buffer.from(content as Uint8Array), {
        parents: true,
        ...(mode === undefined ? {} : { mode }),
      });
    },
    async read(path) {
      const pieces: Uint8Array[] = [];
      for await (const piece of await sandbox.readFile(absolute(path))) pieces.push(piece);
      return Buffer.concat(pieces).toString("utf8");
    },
    async [Symbol.asyncDispose]() {
      await originalSandbox.destroy();
      await runtime[Symbol.asyncDispose]();
      await rm(stateDir, { recursive: true, force: true });
      await rm(`/tmp/caisson-${run}`, { recursive: true, force: true });
    },
  };
}
