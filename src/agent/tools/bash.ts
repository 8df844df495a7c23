import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
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
    .describe(`Default ${BASH_TIMEOUT_MS_DEFAULT}, at most ${BASH_TIMEOUT_MS_MAX}.`),
  background: z.boolean().optional().describe("Start it and return at once; read its output later with bash_output."),
  cwd: z.string().max(4000).optional().describe("Where to run it; default /workspace."),
});

export const bashTool: Tool<z.infer<typeof Arguments>> = {
  name: "bash",
  description: `Runs a shell command in the sandbox, in /workspace unless cwd says otherwise. Standard output and error come back together, at most ${BASH_CHARACTERS_MAX} characters; longer output is cut in its middle and kept whole in a file that is named. Each call is a new shell. There is no terminal and no input.`,
  parameters: Arguments,
  parallel: false,
  repeatable: false,
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
    .describe("What bash called it."),
  wait_ms: z.int().min(0).max(BASH_TIMEOUT_MS_MAX).optional().describe("Wait this long for it to end; default 0."),
});

export const bashOutputTool: Tool<z.infer<typeof OutputArguments>> = {
  name: "bash_output",
  description: "Reads what a background command has written so far and says whether it still runs.",
  parameters: OutputArguments,
  parallel: true,
  repeatable: true,
  subject: (args) => `bash_output:${args.id}`,
  async run(args, context) {
    const { isOver, state } = await lookAt(context, args.id, args.wait_ms ?? 0);
    const file = outputFile(context, args.id);
    if (isOver) await settled(context, file);
    const { text, sizeBytes } = await outputText(context.sandbox, file);
    const shortage = await outputShortage(context, file);
    const bound =
      sizeBytes < BASH_OUTPUT_BYTES_MAX ? "" : ` It wrote more than ${BASH_OUTPUT_BYTES_MAX} bytes, and is ended by its next write.`;
    return {
      outcome: "ok",
      text: `${text === "" ? "(no output)" : text}${shortage}\n\n${state}${bound} Its whole output is in ${file}.`,
      details: { state },
    };
  },
};

/** What a command wrote last may still be on its way into the file when its end is known. */
async function settled(context: ToolContext, file: string): Promise<void> {
  const { signal } = context;
  const size = async () => (await context.sandbox.stat(file, { signal })).sizeBytes;
  try {
    for (let looks = 0, before = -1; looks < SETTLE_LOOKS_MAX; looks++) {
      const now = await size();
      if (now === before) return;
      before = now;
      await delay(SETTLE_MS, undefined, { signal });
    }
  } catch {
    // Nothing was written, or nobody waits any more: then what is there is what is shown.
  }
}

async function lookAt(context: ToolContext, id: string, waitMs: number): Promise<{ isOver: boolean; state: string }> {
  const process = await context.sandbox.attach(refOf(context, id));
  process.discardOutput();
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, context.signal]);
  const ended = await Promise.race([process.ended, delay(waitMs, null, { signal }).catch(() => null)]);
  over.abort();
  process.detach();
  if (ended === null) return { isOver: false, state: "It is still running." };
  return { isOver: true, state: ended.kind === "exited" ? `It ended with exit code ${ended.exitCode}.` : `It ended: ${ended.kind}.` };
}

const KillArguments = z.strictObject({
  id: z
    .string()
    .regex(/^t[0-9.]+$/)
    .describe("What bash called it."),
});

export const bashKillTool: Tool<z.infer<typeof KillArguments>> = {
  name: "bash_kill",
  description: "Ends a background command and everything it started.",
  parameters: KillArguments,
  parallel: false,
  repeatable: true,
  subject: (args) => `bash_kill:${args.id}`,
  async run(args, context) {
    const process = await context.sandbox.attach(refOf(context, args.id));
    process.discardOutput();
    await process.kill();
    return { outcome: "ok", text: `${args.id} was ended.` };
  },
};

/** The ref of another call of the same run. */
function refOf(context: ToolContext, id: string): string {
  return context.ref().replace(/:[^:]*$/, `:${id}`);
}
