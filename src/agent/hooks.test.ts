import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { HookCommand } from "../contract/agent/agent.ts";
import { SandboxConfig } from "../contract/sandbox/sandbox.ts";
import { createFakeRuntime } from "../runtimes/fake/runtime.ts";
import type { OwnedSandbox } from "../sandbox/sandbox.ts";
import { askHooks, type HookFunction } from "./hooks.ts";

describe("hooks", () => {
  const runtime = createFakeRuntime();
  let sandbox: OwnedSandbox;
  let callCount = 0;
  beforeAll(async () => {
    sandbox = await runtime.create(SandboxConfig.parse({}));
  });
  afterAll(() => sandbox.destroy());
  const hook = (command: string, options: Partial<HookCommand> = {}): HookCommand => ({ command, timeoutMs: 30_000, ...options });
  const ask = (commands: HookCommand[], functions: HookFunction[] = [], tool = "bash") => {
    callCount += 1;
    const ref = (suffix: string) => `run_x:t${callCount}.1:${suffix}`;
    return askHooks({ call: { when: "before", call: "t1.1", tool, arguments: { command: "ls" } }, commands, functions, sandbox, ref });
  };

  test.each([
    ["exit 0", { kind: "continue" }],
    ["echo no such thing >&2; exit 2", { kind: "block", reason: "no such thing" }],
    ["echo said on stdout; exit 2", { kind: "block", reason: "said on stdout" }],
    ["echo enough >&2; exit 3", { kind: "interrupt", reason: "enough" }],
    ["exit 3", { kind: "interrupt", reason: "exit 3" }],
    ["exit 1", { kind: "block", reason: expect.stringContaining("exit 1") }],
    ["no-such-program", { kind: "block", reason: expect.stringContaining("no-such-program") }],
  ])("%s", async (command, verdict) => {
    expect(await ask([hook(command)])).toEqual(verdict);
  });

  test("receive the call as JSON on stdin", async () => {
    expect(await ask([hook("cat; exit 2")])).toMatchObject({
      reason: '{"when":"before","call":"t1.1","tool":"bash","arguments":{"command":"ls"}}',
    });
  });

  test("block the call when they time out", async () => {
    expect(await ask([hook("sleep 60", { timeoutMs: 100 })])).toMatchObject({ kind: "block", reason: expect.stringContaining("timedOut") });
  });

  test("run only for the tools they name", async () => {
    const only = [hook("exit 2", { tools: ["write", "edit"] })];
    expect((await ask(only)).kind).toBe("continue");
    expect((await ask(only, [], "write")).kind).toBe("block");
  });

  test("rank an interrupt over a block, and a block over continuing", async () => {
    const block: HookFunction = () => ({ kind: "block", reason: "b" });
    const interrupt: HookFunction = async () => ({ kind: "interrupt", reason: "i" });
    const fine: HookFunction = () => ({ kind: "continue" });
    expect(await ask([], [fine, block, interrupt])).toEqual({ kind: "interrupt", reason: "i" });
    expect(await ask([hook("exit 3")], [block])).toEqual({ kind: "interrupt", reason: "exit 3" });
    expect(await ask([hook("exit 0")], [fine, block])).toEqual({ kind: "block", reason: "b" });
    expect(await ask([], [])).toEqual({ kind: "continue" });
  });

  test("block the call when a function throws", async () => {
    const broken: HookFunction = () => {
      throw new TypeError("oops");
    };
    expect(await ask([], [broken])).toEqual({ kind: "block", reason: "A hook failed: oops" });
  });
});
