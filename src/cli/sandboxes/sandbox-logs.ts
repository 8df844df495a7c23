import { CaissonError } from "../../contract/error.ts";
import { CommandEnded, CommandOutput } from "../../contract/event.ts";
import type { Ended } from "../../contract/outcome.ts";
import { showBytes, showDuration } from "../../lib/quantity.ts";
import { textOrBase64 } from "../../lib/text-or-base64.ts";
import { unreachable } from "../../lib/unreachable.ts";
import type { HeldSandbox, OutputChunk, Process } from "../../station/sandboxes/held-sandbox.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { writeOutput } from "../terminal/process-stdio.ts";

/**
 * `caisson logs SANDBOX`: what the newest detached command, or the one that was named, wrote lately, and how it ended.
 */
export async function sandboxLogs(context: CliContext, given: ParsedArguments, word: string): Promise<number> {
  if (given.flag("from")) {
    throw new CaissonError("invalid", "--from goes with a run, not with a sandbox", { hint: "`--json` names the offset of each piece." });
  }
  await using sandbox = await context.station.sandboxes.hold(word, context.interruption);
  const ref = given.option("process") ?? (await newestDetached(sandbox));
  const isFollowed = given.flag("follow");
  const process = await sandbox.attach(ref, { follow: isFollowed });
  void Promise.race([context.stdout.broken, context.stderr.broken]).then(() => process.detach());
  const isJson = given.flag("json");
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

/** Whether a word of `logs` stands for a sandbox. A name is a sandbox's or a run's that is not over, never both. */
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

/** Throws `not_found`. */
async function newestDetached(sandbox: HeldSandbox): Promise<string> {
  // What a command left running has its ref, too, and began later.
  const began = new Map<string, number>();
  for (const { ref, startedMs, keepsLastOutput } of await sandbox.processes())
    if (ref !== null && keepsLastOutput) began.set(ref, Math.min(startedMs, began.get(ref) ?? startedMs));
  const newest = [...began].sort(([, one], [, other]) => one - other).at(-1);
  if (newest !== undefined) return newest[0];
  throw new CaissonError("not_found", `no command was left running in ${sandbox.id}`, {
    hint: `\`caisson exec -d --sandbox ${sandbox.id} -- COMMAND\` starts one; what other commands write is not kept.`,
  });
}

async function printOutput(context: CliContext, process: Process): Promise<void> {
  const begun = new Set<OutputChunk["stream"]>();
  for await (const chunk of process.output) {
    const { stream, offset } = chunk;
    if (!begun.has(stream) && offset > 0)
      await context.stderr.print(line`caisson: the first ${showBytes(offset)} of its ${stream} were dropped; the last are kept`);
    begun.add(stream);
    await writeOutput(context, chunk);
  }
}

/** It runs still; or somebody else took its output over, which is no fault; or the sandbox is gone, which throws. */
async function tellWhyNoEnd(
  context: CliContext,
  sandbox: HeldSandbox,
  { isFollowed, isJson }: { isFollowed: boolean; isJson: boolean },
): Promise<number> {
  await sandbox.processes();
  const text = isFollowed ? "somebody else follows it now" : "it runs; -f follows it";
  if (!isJson || isFollowed) await context.stderr.print(line`caisson: ${text}`);
  return isFollowed ? 1 : 0;
}

function endText(ended: Exclude<Ended, { kind: "lost" }>): string {
  const after = `after ${showDuration(ended.durationMs)}`;
  switch (ended.kind) {
    case "exited":
      return `it ended with exit code ${ended.exitCode} ${after}`;
    case "signaled":
      return `it was ended by ${ended.signal} ${after}`;
    case "timedOut":
      return `it was ended: it ran longer than allowed, ${showDuration(ended.durationMs)}`;
    case "killed":
      return `it was ended ${after}: ${killedText[ended.why]}`;
    default:
      return unreachable(ended);
  }
}

const killedText: Record<Extract<Ended, { kind: "killed" }>["why"], string> = {
  memory: "it passed the memory limit",
  output: "it wrote more than --output-max allows",
  cancelled: "somebody cancelled it",
  disk: "the machine's disk is nearly full",
};
