import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { ignore } from "../../lib/failures.ts";
import type { Tool, ToolContext } from "../tool.ts";
import { outputFile, outputShortage, outputText, runForModel, startCommand } from "./command.ts";
import { BASH_CHARACTERS_MAX, BASH_OUTPUT_BYTES_MAX, BASH_TIMEOUT_MS_DEFAULT, BASH_TIMEOUT_MS_MAX } from "./limits.ts";
import { absolutePath } from "./workspace-path.ts";

const SETTLE_MS = 30;
const SETTLE_LOOKS_MAX = 20;

const Arguments = z.strictObject({
  command: z.string().min(1).max(100_000).describe("The shell command."),
  timeout_ms: z
    .int()
    .min(100)
    .max(BASH_TIMEOUT_MS_MAX)
    .optional()
    .describe(`Milliseconds; default ${BASH_TIMEOUT_MS_DEFAULT}, at most ${BASH_TIMEOUT_MS_MAX}.`),
  background: z.boolean().optional().describe("Start the command and return at once; read its output later with bash_output."),
  cwd: z.string().max(4000).optional().describe("The working directory; default /workspace."),
});

export const bashTool: Tool<z.infer<typeof Arguments>> = {
  name: "bash",
  description: `Runs a shell command in the sandbox, in /workspace unless cwd is set. Returns standard output and error together, at most ${BASH_CHARACTERS_MAX} characters; longer output is cut in the middle, and the result names a file with all of it. Each call is a new shell, without a terminal or input.`,
  parameters: Arguments,
  parallel: false,
  repeatable: false,
  files: "any",
  resumable: true,
  subject: (args) => `bash:${args.command}`,
  async run(args, context) {
    const command = { argv: { shell: args.command }, cwd: absolutePath(args.cwd ?? "/workspace") };
    if (!args.background) return await runForModel({ ...command, timeoutMs: args.timeout_ms ?? BASH_TIMEOUT_MS_DEFAULT }, context);
    (await startCommand({ ...command, unwatched: true }, context)).detach();
    const file = outputFile(context, context.call);
    return {
      outcome: "ok",
      text: `Started in the background as ${context.call}. Its output goes to ${file}.`,
      details: { background: context.call, file },
    };
  },
};

const OutputArguments = z.strictObject({
  id: z
    .string()
    .regex(/^t[0-9.]+$/)
    .describe("The ID that bash returned."),
  wait_ms: z.int().min(0).max(BASH_TIMEOUT_MS_MAX).optional().describe("Milliseconds to wait for it to end; default 0."),
});

export const bashOutputTool: Tool<z.infer<typeof OutputArguments>> = {
  name: "bash_output",
  description: "Returns the output of a background command so far, and whether it is still running.",
  parameters: OutputArguments,
  parallel: true,
  repeatable: true,
  files: "untouched",
  subject: (args) => `bash_output:${args.id}`,
  async run(args, context) {
    const { isOver, state } = await inspectProcess(context, args.id, args.wait_ms ?? 0);
    const file = outputFile(context, args.id);
    if (isOver) await waitUntilWritten(context, file);
    const { text, sizeBytes } = await outputText(context.sandbox, file);
    const shortage = await outputShortage(context, file);
    const bound =
      sizeBytes < BASH_OUTPUT_BYTES_MAX ? "" : ` Its output reached the limit of ${BASH_OUTPUT_BYTES_MAX} bytes; its next write ends it.`;
    return {
      outcome: "ok",
      text: `${text === "" ? "(no output)" : text}${shortage}\n\n${state}${bound} Its full output is in ${file}.`,
      details: { state },
    };
  },
};

/** Waits until the file stops growing: when a command ends, its last output may not be in the file yet. */
async function waitUntilWritten(context: ToolContext, file: string): Promise<void> {
  const { signal } = context;
  const size = async () => (await context.sandbox.stat(file, { signal })).sizeBytes;
  const settle = async () => {
    for (let looks = 0, before = -1; looks < SETTLE_LOOKS_MAX; looks++) {
      const now = await size();
      if (now === before) return;
      before = now;
      await delay(SETTLE_MS, undefined, { signal });
    }
  };
  await ignore(settle(), "without a file or a caller, the output so far is returned");
}

async function inspectProcess(context: ToolContext, id: string, waitMs: number): Promise<{ isOver: boolean; state: string }> {
  const process = await context.sandbox.attach(refOf(context, id));
  process.discardOutput();
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, context.signal]);
  const ended = await Promise.race([process.ended, ignore(delay(waitMs, null, { signal }), "ended by the signal")]);
  over.abort();
  process.detach();
  if (ended == null) return { isOver: false, state: "It is still running." };
  return { isOver: true, state: ended.kind === "exited" ? `It ended with exit code ${ended.exitCode}.` : `It ended: ${ended.kind}.` };
}

const KillArguments = z.strictObject({
  id: z
    .string()
    .regex(/^t[0-9.]+$/)
    .describe("The ID that bash returned."),
});

export const bashKillTool: Tool<z.infer<typeof KillArguments>> = {
  name: "bash_kill",
  description: "Ends a background command and everything it started.",
  parameters: KillArguments,
  parallel: false,
  repeatable: true,
  files: "any",
  subject: (args) => `bash_kill:${args.id}`,
  async run(args, context) {
    const process = await context.sandbox.attach(refOf(context, args.id));
    process.discardOutput();
    await process.kill();
    return { outcome: "ok", text: `Ended ${args.id}.` };
  },
};

/** Returns the ref of another call in the same run. */
function refOf(context: ToolContext, id: string): string {
  return context.ref().replace(/:[^:]*$/, `:${id}`);
}
