import { CaissonError } from "../../contract/error/error.ts";
import type { Ended } from "../../contract/outcome.ts";
import { CommandEnded, CommandOutput } from "../../contract/sandbox/sandbox-event.ts";
import { showBytes, showDuration } from "../../lib/quantity.ts";
import { textOrBase64 } from "../../lib/text-or-base64.ts";
import { unreachable } from "../../lib/unreachable.ts";
import type { HeldSandbox, OutputChunk, Process } from "../../verbs/held-sandbox.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { writeOutput } from "../terminal/process-stdio.ts";

/**
 * `caisson logs SANDBOX`: shows the recent output of the newest detached command, or of the one given, and how it
 * ended.
 */
export async function sandboxLogs(context: CliContext, args: ParsedArguments, word: string): Promise<number> {
  if (args.flag("from")) {
    throw new CaissonError("invalid", "--from requires a run, not a sandbox", { hint: "Use `--json` to see the offset of each piece." });
  }
  await using sandbox = await context.station.sandboxes.hold(word, context.interruption);
  const ref = args.option("process") ?? (await newestDetached(sandbox));
  const isFollowed = args.flag("follow");
  const process = await sandbox.attach(ref, { follow: isFollowed });
  void Promise.race([context.stdout.broken, context.stderr.broken]).then(() => process.detach());
  const isJson = args.flag("json");
  const of = { sandbox: sandbox.id, ref };
  const printJson = ({ stream, offset, data }: OutputChunk) =>
    context.stdout.printJson(CommandOutput.make({ ...of, stream, offset, ...textOrBase64(data) }));
  if (isJson) for await (const chunk of process.output) await printJson(chunk);
  else await printOutput(context, process);
  const ended = await process.ended;
  if (ended.kind === "lost") return await tellWhyNoEnd(context, sandbox, { isFollowed, isJson });
  if (isJson) await context.stdout.printJson(CommandEnded.make({ ...of, ended }));
  else await context.stderr.print(line`caisson: ${endText(ended)}`);
  return 0;
}

/** Whether an argument of `logs` names a sandbox. A name belongs to a sandbox or to an active run, never to both. */
export async function isSandbox({ station }: Pick<CliContext, "station">, word: string): Promise<boolean> {
  if (/^(?:run|sb)_/.test(word)) return word.startsWith("sb_");
  try {
    await station.sandboxes.get(word);
    return true;
  } catch (error) {
    if (error instanceof CaissonError && (error.code === "not_found" || error.code === "invalid")) return false;
    throw error;
  }
}

/** Returns the ref of the newest detached command. Throws `not_found`. */
async function newestDetached(sandbox: HeldSandbox): Promise<string> {
  // Processes that a command left behind share its ref and started later.
  const began = new Map<string, number>();
  for (const { ref, startedMs, keepsLastOutput } of await sandbox.processes())
    if (ref !== null && keepsLastOutput) began.set(ref, Math.min(startedMs, began.get(ref) ?? startedMs));
  const newest = [...began].sort(([, one], [, other]) => one - other).at(-1);
  if (newest !== undefined) return newest[0];
  throw new CaissonError("not_found", `no detached command was started in ${sandbox.id}`, {
    hint: `Start one: \`caisson exec -d --sandbox ${sandbox.id} -- COMMAND\`. The output of other commands is not stored.`,
  });
}

async function printOutput(context: CliContext, process: Process): Promise<void> {
  const startedStreams = new Set<OutputChunk["stream"]>();
  for await (const chunk of process.output) {
    const { stream, offset } = chunk;
    if (!startedStreams.has(stream) && offset > 0)
      await context.stderr.print(line`caisson: the first ${showBytes(offset)} of its ${stream} are no longer stored`);
    startedStreams.add(stream);
    await writeOutput(context, chunk);
  }
}

/**
 * Explains why the end is unknown: the command is still running, or another client follows it now, which is not a
 * failure. Throws if the sandbox no longer exists.
 */
async function tellWhyNoEnd(
  context: CliContext,
  sandbox: HeldSandbox,
  { isFollowed, isJson }: { isFollowed: boolean; isJson: boolean },
): Promise<number> {
  await sandbox.processes();
  const text = isFollowed ? "another client follows it now" : "it is still running; use -f to follow it";
  if (!isJson || isFollowed) await context.stderr.print(line`caisson: ${text}`);
  return isFollowed ? 1 : 0;
}

function endText(ended: Exclude<Ended, { kind: "lost" }>): string {
  const after = `after ${showDuration(ended.durationMs)}`;
  switch (ended.kind) {
    case "exited":
      return `it ended with exit code ${ended.exitCode} ${after}`;
    case "signaled":
      return `it was killed by ${ended.signal} ${after}`;
    case "timedOut":
      return `it was stopped: it exceeded its time limit, after ${showDuration(ended.durationMs)}`;
    case "killed":
      return `it was stopped ${after}: ${killedText[ended.why]}`;
    default:
      return unreachable(ended);
  }
}

const killedText: Record<Extract<Ended, { kind: "killed" }>["why"], string> = {
  memory: "it exceeded the memory limit",
  output: "its output exceeded --output-max",
  cancelled: "another process cancelled it",
  disk: "the machine's disk is nearly full",
};
