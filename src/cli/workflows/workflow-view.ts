import type { DrivenView } from "../../contract/driven.ts";
import type { WorkflowEvent } from "../../contract/workflow-event.ts";
import type { WorkflowStepView, WorkflowView } from "../../contract/workflow-verbs.ts";
import { bad, bold, dim, good, type Line, line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

const OUTPUT_CHARS_MAX = 2000;

/** One line for what happens, or none. */
export function eventLine(event: WorkflowEvent): Line | null {
  switch (event.type) {
    case "workflow.step_started": {
      const { path, kind, attempt } = event.data;
      return line`${dim("▸")} ${path} ${dim(`(${kind}${attempt > 1 ? `, attempt ${attempt}` : ""})`)}`;
    }
    case "workflow.child_started":
      return line`  ${dim(`${event.data.path} is ${event.data.child.replace(/^[a-z]+\//, "")}`)}`;
    case "workflow.step_ended": {
      const { path, status, error, retryAt } = event.data;
      if (status === "completed") return line`${good("✓")} ${path}`;
      const again = retryAt === null ? "" : "; it is tried again";
      return line`${status === "skipped" ? dim("–") : bad("✗")} ${path} ${dim(status)}${error === null ? "" : `: ${error.text}`}${again}`;
    }
    case "workflow.passed_over":
      return line`${dim("–")} ${event.data.due} ${dim(event.data.queued ? "waits for the end of the last one" : "passed over")}`;
    case "driven.paused":
      return line`${bold("paused")} by ${event.data.by}`;
    case "driven.cancel_requested":
      return line`${bold("cancelled")} by ${event.data.by}`;
    case "workflow.defined":
    case "workflow.summed_up":
    case "workflow.command_ended":
    case "workflow.cancelling":
    case "workflow.signalled":
    case "workflow.answered":
    case "workflow.retried":
    case "workflow.cleaned":
    case "driven.created":
    // Whoever follows the workflow tells what it waits for.
    case "driven.waiting":
    case "driven.continued":
    case "driven.ended":
    case "driven.reopened":
      return null;
    default:
      // A new event does not compile until it is named above.
      event satisfies never;
      return null;
  }
}

/** What somebody has to do, if anything. */
export function waitLines(view: DrivenView): Line[] {
  const { waits, id } = view;
  if (waits === null) return [];
  return [
    ...(waits.person === null ? [] : [line`${bold(waits.person)}`, line`${dim(`caisson workflow approve ${id}`)}`]),
    ...(waits.signal === null
      ? []
      : [line`It waits for the signal ${bold(waits.signal)}: ${dim(`caisson workflow signal ${id} ${waits.signal}`)}`]),
    ...(waits.due === null ? [] : [line`It goes on at ${waits.due} at the latest.`]),
  ];
}

export function workflowRows(items: readonly DrivenView[]): Line[] {
  const rows = items.map(({ id, title, owner, status, finish, waits, updatedAt }) => [
    id,
    title,
    owner,
    finish ?? (status === "waiting" ? `waiting for ${whatFor(waits)}` : status),
    updatedAt,
  ]);
  return table([["ID", "NAME", "OWNER", "STATE", "CHANGED"], ...rows]);
}

function whatFor(waits: DrivenView["waits"]): string {
  if (waits?.person != null) return "a person";
  if (waits?.signal != null) return `the signal ${waits.signal}`;
  return (waits?.children.length ?? 0) > 0 ? "what it started" : "a time";
}

function scheduleLines({ schedule }: WorkflowView): Line[] {
  if (schedule === null) return [];
  const { cron, overlap, next, started, passedOver } = schedule;
  const upcoming = next === null ? "there is no next" : `the next is at ${next}`;
  return [line`At ${bold(cron)} (UTC, ${overlap}): ${started} started, ${passedOver} passed over; ${upcoming}.`];
}

export function workflowLines(view: WorkflowView): Line[] {
  const { id, title, status, finish, text, output } = view;
  const shown = JSON.stringify(output);
  return [
    line`${bold(title)} ${id}: ${finish ?? status}${text === null ? "" : ` (${text})`}`,
    ...scheduleLines(view),
    ...waitLines(view),
    ...(view.steps.length === 0 ? [] : table([["STEP", "KIND", "STATE", "ATTEMPT", "WITH"], ...view.steps.map(stepRow)])),
    ...(output === null ? [] : [line`Output: ${shown.length > OUTPUT_CHARS_MAX ? `${shown.slice(0, OUTPUT_CHARS_MAX)}…` : shown}`]),
  ];
}

function stepRow({ path, kind, status, attempt, child, error }: WorkflowStepView): string[] {
  return [path, kind, error === null ? status : `${status}: ${error.code}`, String(attempt), child?.replace(/^[a-z]+\//, "") ?? ""];
}
