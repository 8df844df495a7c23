import { SpecPhase } from "../../contract/spec.ts";
import type { SpecEvent } from "../../contract/spec-event.ts";
import type { ExecuteSpec, SpecView } from "../../contract/spec-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { unreachable } from "../../lib/unreachable.ts";
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

/** `caisson spec run SPEC`: executes what is not driven, and follows it. */
export async function run(context: CliContext, given: ParsedArguments): Promise<number> {
  const from = given.option("from");
  return await executed(context, given, {
    ...defined({
      from: from === undefined ? undefined : parseChoice(...SpecPhase.options)("from", from),
      source: given.flag("repo") ? sourceFrom(context, given) : undefined,
    }),
  });
}

/** `caisson spec resume SPEC` */
export async function resume(context: CliContext, given: ParsedArguments): Promise<number> {
  return await executed(context, given, {});
}

async function executed(context: CliContext, given: ParsedArguments, asked: Omit<ExecuteSpec, "by">): Promise<number> {
  const { specs } = context.station;
  const before = await specs.get(given.positionals[0] ?? "");
  const json = given.flag("json");
  const begun = await specs.execute(before.spec, { ...asked, until: given.flag("plan") ? "sync" : "complete", by: "user" });
  if (given.flag("detach")) {
    await (json ? context.stdout.printJson(begun) : context.stdout.print(line`${begun.spec}`));
    return 0;
  }
  const view = await follow(context, before, { json });
  if (view === null) return exitCodeOf(context.interruption.received() ?? "SIGINT");
  if (!json) await context.stdout.print(nextLines(view));
  return exitCodes[view.status];
}

/** Prints what happens until it has ended or waits for a person; null when we are told to end before. */
export async function follow(context: CliContext, { spec, seq }: SpecView, { json }: { json: boolean }): Promise<SpecView | null> {
  const { specs } = context.station;
  const { signal } = context.interruption;
  let fromSeq = seq + 1;
  const printTo = async (last: number | null, ended: AbortSignal) => {
    if (last !== null && last < fromSeq) return;
    for await (const event of specs.events(spec, { fromSeq, follow: true, signal: ended })) {
      fromSeq = event.seq + 1;
      await (json ? context.stdout.printJson(event) : context.stdout.print(eventLines(event)));
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
    await printing.catch(() => undefined);
    if (signal.aborted) return null;
    throw error;
  }
}

function eventLines(event: SpecEvent): Line[] {
  switch (event.type) {
    case "spec.phase_started":
      return [line`${event.data.phase}: attempt ${event.data.attempt}`];
    case "spec.phase_running":
      return [dim("  run ", event.data.run)];
    case "spec.phase_judged": {
      const { judgement, phase, retryAt } = event.data;
      if (judgement.passed) return [line`  ${good("✓")} ${phase} passed with ${judgement.score}`];
      const wrong = judgement.checks.filter(({ feedback }) => feedback !== "").map(({ feedback }) => dim("    ", feedback));
      return [line`  ${bad("✗")} ${phase} failed with ${judgement.score}${retryAt === null ? "" : "; it is tried again"}`, ...wrong];
    }
    case "spec.written":
      return [dim(`  version ${event.data.version}`)];
    case "spec.approved":
      return [line`${event.data.by} agreed to ${event.data.phase}`];
    case "spec.rejected":
      return [line`${event.data.by} rejected ${event.data.phase}: ${event.data.text}`];
    case "spec.task_started":
      return [line`${event.data.task}: started`];
    case "spec.task_running":
      return [dim("  run ", event.data.run)];
    case "spec.task_ended": {
      const { task, finish, changed } = event.data;
      return [line`  ${finish === "done" ? good("✓") : bad("✗")} ${task} ended: ${finish}; changed ${changed.join(", ") || "nothing"}`];
    }
    case "spec.merge_started":
      return [line`merging ${event.data.sessions.join(", ")}`];
    case "spec.merge_running":
      return [dim("  merge ", event.data.merge)];
    case "spec.merge_ended":
      return [event.data.session === null ? line`  ${bad("✗")} ${event.data.text}` : line`  ${good("✓")} merged: ${event.data.session}`];
    case "driven.cancel_requested":
      return [line`cancelled by ${event.data.by}`];
    case "spec.concluded":
      return [line`${event.data.outcome}: ${event.data.text}`];
    case "spec.proposed":
    case "spec.executed":
    case "driven.created":
    case "driven.waiting":
    case "driven.paused":
    case "driven.continued":
    case "driven.ended":
    case "driven.reopened":
      return [];
    default:
      return unreachable(event);
  }
}
