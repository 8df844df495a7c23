import { CaissonError } from "../../contract/error/error.ts";
import type { MessageMode } from "../../contract/run/run.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseCount } from "../options/option-values.ts";
import { isSandbox, sandboxLogs } from "../sandboxes/sandbox-logs.ts";
import { line } from "../terminal/line.ts";
import { exitCodeOf } from "../terminal/signals.ts";
import { followRun } from "./follow-run.ts";
import { boundsFrom } from "./run-bounds.ts";
import { runAndRest, runNamed } from "./run-named.ts";
import { printOutcome } from "./run-outcome.ts";
import { exitCodes, showDrivenRun } from "./show-run.ts";
import { continueIfUndriven, tellUndriven } from "./undriven-run.ts";

/** The number of events that `attach` shows of a long run: about as far as a person scrolls back. */
const ATTACHED_EVENTS = 2_000;

/** `caisson logs RUN`, or for a sandbox the output of its detached commands */
export async function logs(context: CliContext, args: ParsedArguments): Promise<number> {
  const { runs } = context.station;
  if (args.flag("check")) return await checkLog(context, args);
  const [word] = args.positionals;
  if (word !== undefined && (await isSandbox(context, word))) return await sandboxLogs(context, args, word);
  if (args.flag("process")) throw new CaissonError("invalid", "--process requires a sandbox, not a run");
  const from = args.option("from");
  const { run } = await runs.get(await runNamed(context, args.positionals[0]));
  // A run that is followed appears live; only stored output goes through a pager.
  const paged = !args.flag("follow") && !args.flag("json") && !args.flag("no-pager");
  const stdout = paged ? await context.pager.open() : context.stdout;
  await followRun({ ...context, stdout }, runs, run, {
    json: args.flag("json"),
    live: args.flag("follow"),
    whileDriven: true,
    signal: context.interruption.signal,
    ...defined({ fromSeq: from === undefined ? undefined : parseCount("from", from) }),
  });
  if (args.flag("follow")) await tellUndriven(context, run);
  return 0;
}

async function checkLog(context: CliContext, args: ParsedArguments): Promise<number> {
  const damages = await context.station.runs.check();
  if (args.flag("json")) await context.stdout.printJson(damages);
  else for (const damage of damages) await context.stdout.print(line`${damage.stream ?? "log"}: ${damage.text}`);
  if (damages.length === 0 && !args.flag("json")) await context.stdout.print(line`The log is intact.`);
  return damages.length === 0 ? 0 : 1;
}

/** `caisson attach RUN`: watches only; `caisson answer` answers, `caisson send` steers. */
export async function attach(context: CliContext, args: ParsedArguments): Promise<number> {
  const { runs, sessions } = context.station;
  const name = await runNamed(context, args.positionals[0]);
  const { run } = await runs.get(name);
  const isWhole = args.flag("all") || args.flag("json");
  await followRun(context, runs, run, {
    json: args.flag("json"),
    live: true,
    whileDriven: true,
    signal: context.interruption.signal,
    ...(isWhole ? {} : { lastEvents: ATTACHED_EVENTS }),
  });
  const view = await runs.get(run);
  if (view.finish === null) return (await tellUndriven(context, run)) ? 1 : 0;
  if (!args.flag("json")) await printOutcome(context, sessions, { run: view, signal: context.interruption.signal });
  return exitCodes[view.finish];
}

/** `caisson resume RUN`: continues a run that is paused, lost its process, or ended before it was done. */
export async function resume(context: CliContext, args: ParsedArguments): Promise<number> {
  const releaseController = new AbortController();
  const name = await runNamed(context, args.positionals[0]);
  const by = context.variable("USER") ?? "user";
  const { run, seq } = await context.station.runs.resume(name, {
    by,
    signal: releaseController.signal,
    budgets: boundsFrom(args),
    reopens: !args.flag("unless-ended"),
  });
  return await showDrivenRun(context, run, { json: args.flag("json"), releaseController, fromSeq: seq + 1 });
}

/** `caisson send RUN TEXT` */
export async function send(context: CliContext, args: ParsedArguments): Promise<number> {
  const { run, rest } = await runAndRest(context, args.positionals);
  const text = rest.join(" ").trim();
  if (text === "") throw new CaissonError("invalid", "there is no message", { hint: 'Add one: caisson send RUN "use the other parser"' });
  const modes = (["steer", "queue", "interrupt"] as const).filter((mode) => args.flag(mode));
  if (modes.length > 1) throw new CaissonError("invalid", `--${modes.join(" and --")} are mutually exclusive`);
  const mode: MessageMode = modes[0] ?? "steer";
  const { message, continues } = await say(context, args, { run, text, mode });
  const receipt = args.flag("wait") && continues ? await waitForReceipt(context, run, message) : null;
  if (args.flag("json")) await context.stdout.printJson({ message, mode, seenBy: receipt });
  else await context.stdout.print(receipt === null ? line`${message}` : line`${message} was first seen by model call ${receipt}`);
  return 0;
}

/** Sends a message to an active run, or continues a finished one with it. */
async function say(
  context: CliContext,
  args: ParsedArguments,
  { run, text, mode }: { run: string; text: string; mode: MessageMode },
): Promise<{ message: string; continues: boolean }> {
  const { runs } = context.station;
  try {
    const { message } = await runs.send(run, { text, mode, source: "user" });
    return { message, continues: await continueIfUndriven(context, run, args) };
  } catch (error) {
    const hasEnded = error instanceof CaissonError && error.code === "conflict" && error.details?.finish !== undefined;
    if (!hasEnded || args.flag("no-resume")) throw error;
    const by = context.variable("USER") ?? "user";
    const { seq } = await runs.continue(run, { text, by, attended: true, detached: true });
    await context.stderr.print(line`caisson: ${run} had ended (${String(error.details?.finish)}); it continues in the background`);
    await context.stderr.print(line`hint: Run \`caisson attach ${run}\` to watch it.`);
    return { message: await messageAt(context, run, seq), continues: true };
  }
}

async function messageAt(context: CliContext, run: string, seq: number): Promise<string> {
  for await (const event of context.station.runs.events(run, { fromSeq: seq }))
    if (event.type === "message.received") return event.data.message;
  throw new CaissonError("internal", `the message to ${run} is missing from its log`);
}

async function waitForReceipt(context: CliContext, run: string, message: string): Promise<string | null> {
  const { signal } = context.interruption;
  for await (const event of context.station.runs.events(run, { follow: true, signal }))
    if (event.type === "model.requested" && event.data.messages.includes(message)) return event.data.call;
  return null;
}

/** `caisson answer RUN allow|always|deny` */
export async function answer(context: CliContext, args: ParsedArguments): Promise<number> {
  const { runs } = context.station;
  const {
    run,
    rest: [word = "", ...text],
  } = await runAndRest(context, args.positionals);
  const answers: Record<string, "allow" | "always" | "deny"> = { allow: "allow", yes: "allow", always: "always", deny: "deny", no: "deny" };
  const chosen = answers[word.toLowerCase()];
  if (!chosen) throw new CaissonError("invalid", `${JSON.stringify(word)} is not an answer`, { hint: "Use allow, always or deny." });
  const { asked: questions } = await runs.get(run);
  const question = args.option("question") ?? questions[0]?.question;
  await runs.answer(run, {
    answer: chosen,
    by: context.variable("USER") ?? "user",
    budgets: boundsFrom(args),
    ...defined({ question, text: text.length === 0 ? undefined : text.join(" ") }),
  });
  await continueIfUndriven(context, run, args);
  if (args.flag("json")) await context.stdout.printJson({ run, question, answer: chosen });
  return 0;
}

/** `caisson stop RUN` */
export async function stop(context: CliContext, args: ParsedArguments): Promise<number> {
  const by = context.variable("USER") ?? "user";
  const { signal } = context.interruption;
  const named = args.positionals.length === 0 ? [await runNamed(context, undefined)] : args.positionals;
  for (const run of named) {
    const failure = await context.station.runs.stop(run, { by, signal }).then(
      () => null,
      (error: unknown) => error,
    );
    const isWaitedFor = failure instanceof CaissonError && failure.code === "cancelled" && signal.aborted;
    if (failure !== null && !isWaitedFor) throw failure;
    const isStopped = failure === null;
    if (args.flag("json")) await context.stdout.printJson({ run, stopped: isStopped });
    else if (isStopped) await context.stdout.print(line`${run} stopped`);
    if (isStopped) continue;
    await context.stderr.print(line`caisson: ${run} was asked to stop, but has not ended yet`);
    await context.stderr.print(line`hint: Run \`caisson attach ${run}\` to watch it.`);
    return exitCodeOf(context.interruption.received() ?? "SIGINT");
  }
  return 0;
}
