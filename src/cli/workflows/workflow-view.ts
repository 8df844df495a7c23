import type { JobView } from "../../contract/durable/durable-job.ts";
import type { EventFor } from "../../contract/event/event-family.ts";
import { type Handlers, handle } from "../../contract/event/handlers.ts";
import type { WorkflowEvent, workflowEvents } from "../../contract/workflow/workflow-event.ts";
import type { WorkflowStepView, WorkflowView } from "../../contract/workflow/workflow-verbs.ts";
import { bad, bold, dim, good, type Line, line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

const OUTPUT_CHARS_MAX = 2000;

/** Formats an event as one line, or returns null for events that are not shown. */
export const eventLine = (event: WorkflowEvent): Line | null => handle(lines, event, undefined) ?? null;

type SharedEvent = Extract<WorkflowEvent, { type: "driven.paused" | "driven.cancel_requested" }>;

const lines: Handlers<EventFor<typeof workflowEvents, "terminal"> | SharedEvent, void, Line | null> = {
  "workflow.step_started": ({ data: { path, kind, attempt } }) =>
    line`${dim("▸")} ${path} ${dim(`(${kind}${attempt > 1 ? `, attempt ${attempt}` : ""})`)}`,
  "workflow.child_started": ({ data: { path, child } }) => line`  ${dim(`${path} is ${child.replace(/^[a-z]+\//, "")}`)}`,
  "workflow.step_ended": ({ data: { path, status, error, retryAt } }) => {
    if (status === "completed") return line`${good("✓")} ${path}`;
    const again = retryAt === null ? "" : "; trying again";
    return line`${status === "skipped" ? dim("–") : bad("✗")} ${path} ${dim(status)}${error === null ? "" : `: ${error.text}`}${again}`;
  },
  "workflow.cleaned": ({ data: { sessions = [] } }) =>
    sessions.length === 0
      ? null
      : line`  ${dim(`removed the ${sessions.length === 1 ? "workspace" : "workspaces"} ${sessions.join(", ")}`)}`,
  "workflow.passed_over": ({ data: { due, queued } }) =>
    line`${dim("–")} ${due} ${dim(queued ? "waits for the previous instance" : "skipped")}`,
  "driven.paused": ({ data }) => line`${bold("paused")} by ${data.by}`,
  "driven.cancel_requested": ({ data }) => line`${bold("cancelled")} by ${data.by}`,
};

/** Shows what a person has to do, if anything. */
export function waitLines(view: JobView): Line[] {
  const { waits, id } = view;
  if (waits === null) return [];
  return [
    ...(waits.person === null ? [] : [line`${bold(waits.person)}`, line`${dim(`caisson workflow approve ${id}`)}`]),
    ...(waits.signal === null
      ? []
      : [line`Waiting for the signal ${bold(waits.signal)}: ${dim(`caisson workflow signal ${id} ${waits.signal}`)}`]),
    ...(waits.due === null ? [] : [line`It continues no later than ${waits.due}.`]),
  ];
}

export function workflowRows(items: readonly JobView[]): Line[] {
  const rows = items.map(({ id, title, owner, status, finish, waits, updatedAt }) => [
    id,
    title,
    owner,
    finish ?? (status === "waiting" ? `waiting for ${whatFor(waits)}` : status),
    updatedAt,
  ]);
  return table([["ID", "NAME", "OWNER", "STATE", "CHANGED"], ...rows]);
}

function whatFor(waits: JobView["waits"]): string {
  if (waits?.person != null) return "a person";
  if (waits?.signal != null) return `the signal ${waits.signal}`;
  return (waits?.children.length ?? 0) > 0 ? "workflows that it started" : "a time";
}

function scheduleLines({ schedule }: WorkflowView): Line[] {
  if (schedule === null) return [];
  const { cron, overlap, next, started, passedOver } = schedule;
  const upcoming = next === null ? "no further start" : `next at ${next}`;
  return [line`At ${bold(cron)} (UTC, ${overlap}): ${started} started, ${passedOver} skipped; ${upcoming}.`];
}

export function workflowLines(view: WorkflowView): Line[] {
  const { id, title, status, finish, text, output } = view;
  const outputJson = JSON.stringify(output);
  return [
    line`${bold(title)} ${id}: ${finish ?? status}${text === null ? "" : ` (${text})`}`,
    ...scheduleLines(view),
    ...waitLines(view),
    ...(view.steps.length === 0 ? [] : table([["STEP", "KIND", "STATE", "ATTEMPT", "WITH"], ...view.steps.map(stepRow)])),
    ...(output === null
      ? []
      : [line`Output: ${outputJson.length > OUTPUT_CHARS_MAX ? `${outputJson.slice(0, OUTPUT_CHARS_MAX)}…` : outputJson}`]),
  ];
}

function stepRow({ path, kind, status, attempt, child, error }: WorkflowStepView): string[] {
  return [path, kind, error === null ? status : `${status}: ${error.code}`, String(attempt), child?.replace(/^[a-z]+\//, "") ?? ""];
}
