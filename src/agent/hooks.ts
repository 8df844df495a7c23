import type { HookCommand } from "../contract/agent/agent.ts";
import { CaissonError } from "../contract/error/error.ts";
import { runCommand } from "../sandbox/run-command.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

export type HookVerdict = { kind: "continue" } | { kind: "block"; reason: string } | { kind: "interrupt"; reason: string };

export interface HookCall {
  when: "before" | "after";
  call: string;
  tool: string;
  arguments: unknown;
  /** The outcome of the call; only after the tool. */
  outcome?: string;
  text?: string;
}

/**
 * A hook that a user of the library supplies. It runs on the host, in the program that embeds Caisson, and sees only
 * data.
 */
export type HookFunction = (call: HookCall) => Promise<HookVerdict> | HookVerdict;

/** The exit codes that have a meaning. Any other failure blocks: a broken guard must not let calls through. */
const EXIT_CONTINUE = 0;
const EXIT_INTERRUPT = 3;
const HOOK_OUTPUT_BYTES_MAX = 64 * 1024;

/** Runs every hook. An interrupt outranks a block, and a block outranks continuing. */
export async function askHooks(options: {
  call: HookCall;
  commands: readonly HookCommand[];
  functions: readonly HookFunction[];
  sandbox: Sandbox;
  ref: (suffix: string) => string;
}): Promise<HookVerdict> {
  const verdicts: HookVerdict[] = [];
  for (const hook of options.functions) verdicts.push(await callHook(hook, options.call));
  let number = 0;
  for (const command of options.commands) {
    number += 1;
    if (command.tools && !command.tools.includes(options.call.tool)) continue;
    verdicts.push(await runHook(command, options, number));
  }
  return (
    verdicts.find((verdict) => verdict.kind === "interrupt") ?? verdicts.find((verdict) => verdict.kind === "block") ?? { kind: "continue" }
  );
}

/** A hook that throws blocks: a broken guard must not let calls through. */
async function callHook(hook: HookFunction, call: HookCall): Promise<HookVerdict> {
  try {
    return await hook(call);
  } catch (error) {
    return { kind: "block", reason: `A hook failed: ${error instanceof Error ? error.message.slice(0, 500) : String(error)}` };
  }
}

async function runHook(
  hook: HookCommand,
  options: { call: HookCall; sandbox: Sandbox; ref: (suffix: string) => string },
  number: number,
): Promise<HookVerdict> {
  const { ended, stderr, stdout } = await runCommand(options.sandbox, {
    argv: ["/bin/sh", "-c", hook.command],
    ref: options.ref(`${options.call.when}${number}`),
    input: Buffer.from(JSON.stringify(options.call)),
    timeoutMs: hook.timeoutMs,
    outputBytesMax: HOOK_OUTPUT_BYTES_MAX,
  });
  if (ended.kind === "lost") throw new CaissonError("lost", "the sandbox died while a hook ran");
  const message = (stderr.length > 0 ? stderr : stdout).trim();
  if (ended.kind === "exited" && ended.exitCode === EXIT_CONTINUE) return { kind: "continue" };
  if (ended.kind === "exited" && ended.exitCode === EXIT_INTERRUPT) return { kind: "interrupt", reason: message || hook.command };
  const how = ended.kind === "exited" ? `exit ${ended.exitCode}` : ended.kind;
  return { kind: "block", reason: message || `The hook ${JSON.stringify(hook.command)} said no (${how}).` };
}
