import type { EventFor } from "../../contract/event/event-family.ts";
import { type Handlers, handle } from "../../contract/event/handlers.ts";
import { SpecPhase } from "../../contract/spec/spec.ts";
import type { SpecEvent, specEvents } from "../../contract/spec/spec-event.ts";
import type { ExecuteSpec, SpecView } from "../../contract/spec/spec-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseChoice } from "../options/option-values.ts";
import { sourceFrom } from "../options/workspace-source.ts";
import { bad, dim, good, type Line, line } from "../terminal/line.ts";
import { exitCodeOf } from "../terminal/signals.ts";
import { nextLines } from "./spec-lines.ts";

const exitCodes: Readonly<Record<SpecView["status"], number>> = {
  ...{ draft: 0, running: 0, waiting: 0, retrying: 0, paused: 0, done: 0, planned: 0 },
  ...{ failed: 1, cancelled: 130 },
};

/** `caisson spec run SPEC`: executes the spec unless it has a driver already, and follows it. */
export async function runSpec(context: CliContext, args: ParsedArguments): Promise<number> {
  const from = args.option("from");
  return await executeSpec(context, args, {
    ...defined({
      from: from === undefined ? undefined : parseChoice(...SpecPhase.options)("from", from),
      source: args.flag("repo") ? sourceFrom(context, args) : undefined,
    }),
  });
}

/** `caisson spec resume SPEC` */
export async function resume(context: CliContext, args: ParsedArguments): Promise<number> {
  return await executeSpec(context, args, {});
}

async function executeSpec(context: CliContext, args: ParsedArguments, request: Omit<ExecuteSpec, "by">): Promise<number> {
  const { specs } = context.station;
  const before = await specs.get(args.positionals[0] ?? "");
  const json = args.flag("json");
  const execution = await specs.execute(before.spec, { ...request, until: args.flag("plan") ? "sync" : "complete", by: "user" });
  if (args.flag("detach")) {
    await (json ? context.stdout.printJson(execution) : context.stdout.print(line`${execution.spec}`));
    return 0;
  }
  const view = await follow(context, before, { json });
  if (view === null) return exitCodeOf(context.interruption.received() ?? "SIGINT");
  if (!json) await context.stdout.print(nextLines(view));
  return exitCodes[view.status];
}

/** Prints a spec's events until it ends or waits for a person. Returns null if a signal arrives first. */
export async function follow(context: CliContext, { spec, seq }: SpecView, { json }: { json: boolean }): Promise<SpecView | null> {
  const { specs } = context.station;
  const { signal } = context.interruption;
  let fromSeq = seq + 1;
  const printTo = async (last: number | null, ended: AbortSignal) => {
    if (last !== null && last < fromSeq) return;
    for await (const event of specs.events(spec, { fromSeq, follow: true, signal: ended })) {
      fromSeq = event.seq + 1;
      await (json ? context.stdout.printJson(event) : context.stdout.print(handle(eventLines, event, undefined) ?? []));
      if (last !== null && event.seq >= last) return;
    }
  };
  const settled = new AbortController();
  const printing = printTo(null, AbortSignal.any([settled.signal, signal]));
  try {
    const view = await specs.wait(spec, { signal });
    settled.abort();
    await printing;
    await printTo(view.seq, signal);
    return view;
  } catch (error) {
    settled.abort();
    await ignore(printing, "the first error is thrown");
    if (signal.aborted) return null;
    throw error;
  }
}

type EventOf<Type extends SpecEvent["type"]> = Extract<SpecEvent, { type: Type }>;

const eventLines: Handlers<EventFor<typeof specEvents, "terminal"> | EventOf<"driven.cancel_requested">, void, Line[]> = {
  "spec.phase_started": ({ data }) => [line`${data.phase}: attempt ${data.attempt}`],
  "spec.phase_running": ({ data }) => [dim("  run ", data.run)],
  "spec.phase_judged": ({ data: { judgement, phase, retryAt } }) => {
    if (judgement.passed) return [line`  ${good("✓")} ${phase} passed with ${judgement.score}`];
    const wrong = judgement.checks.filter(({ feedback }) => feedback !== "").map(({ feedback }) => dim("    ", feedback));
    return [line`  ${bad("✗")} ${phase} failed with ${judgement.score}${retryAt === null ? "" : "; trying again"}`, ...wrong];
  },
  "spec.written": ({ data }) => [dim(`  version ${data.version}`)],
  "spec.approved": ({ data }) => [line`${data.by} approved ${data.phase}`],
  "spec.rejected": ({ data }) => [line`${data.by} rejected ${data.phase}: ${data.text}`],
  "spec.task_started": ({ data }) => [line`${data.task}: started`],
  "spec.task_running": ({ data }) => [dim("  run ", data.run)],
  "spec.task_ended": ({ data: { task, finish, changed } }) => [
    line`  ${finish === "done" ? good("✓") : bad("✗")} ${task} ended: ${finish}; changed ${changed.join(", ") || "nothing"}`,
  ],
  "spec.merge_started": ({ data }) => [line`merging ${data.sessions.join(", ")}`],
  "spec.merge_running": ({ data }) => [dim("  merge ", data.merge)],
  "spec.merge_ended": ({ data: { session, text } }) => [
    session === null ? line`  ${bad("✗")} ${text}` : line`  ${good("✓")} merged: ${session}`,
  ],
  "driven.cancel_requested": ({ data }) => [line`cancelled by ${data.by}`],
  "spec.concluded": ({ data }) => [line`${data.outcome}: ${data.text}`],
};
