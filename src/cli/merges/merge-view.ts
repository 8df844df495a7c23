import type { JobEvent } from "../../contract/durable/durable-event.ts";
import type { EventFor } from "../../contract/event/event-family.ts";
import { type Handlers, handle } from "../../contract/event/handlers.ts";
import type { MergeEvent, mergeEvents } from "../../contract/merge/merge-event.ts";
import type { MergeView } from "../../contract/merge/merge-verbs.ts";
import { bold, dim, type Line, line, quotedName } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

const FILES_SHOWN = 20;

const kinds = {
  content: "changed by both",
  added_twice: "added by both",
  changed_and_removed: "changed by one, removed by the other",
  not_text: "changed by both, not text",
  renamed: "renamed by one",
} as const;

/** Formats a merge for people. */
export function mergeLines(view: MergeView): Line[] {
  const rows: [string, string][] = [
    ["status", view.finish ?? view.status],
    ["sessions", view.sessions.join(", ")],
    ["order", view.order?.join(", ") ?? ""],
    ["merged", view.merged.join(", ")],
    ["result", view.result ?? ""],
    ["message", view.text ?? ""],
  ];
  const filledRows = rows.filter(([, value]) => value !== "").map(([name, value]) => [dim(`  ${name}`), value]);
  return [bold(view.id), ...table(filledRows), ...(view.conflict === null || view.finish !== null ? [] : [line``, ...conflictLines(view)])];
}

/** Lists the conflicts and how to resolve them. */
export function conflictLines({ id, conflict }: MergeView): Line[] {
  if (conflict === null) return [];
  const { with: session, files, session: place, run, why } = conflict;
  const rows = files.slice(0, FILES_SHOWN).map(({ path, kind }) => ["  ", quotedName(path), kinds[kind]]);
  return [
    line`${session} conflicts with the sessions merged before it:`,
    ...table(rows),
    ...(files.length > FILES_SHOWN ? [dim(`  and ${files.length - FILES_SHOWN} more`)] : []),
    ...(why === null ? [] : [line`The last resolution was rejected: ${why}`]),
    ...(run !== null || place === null
      ? []
      : [
          dim(
            `Resolve it in the session ${place}: caisson run "…" --session ${place}; then: caisson merge resume ${id} [--take PATH=merged|theirs]`,
          ),
        ]),
  ];
}

/** Formats an event as a progress line, or returns null if it needs none. */
export const progressLine = (event: MergeEvent | JobEvent): Line | null => handle(progress, event, undefined) ?? null;

const progress: Handlers<EventFor<typeof mergeEvents, "terminal">, void, Line | null> = {
  "merge.planned": ({ data: { order, clashes } }) =>
    line`order: ${order.join(", ")}${clashes.length === 0 ? "" : `; ${clashes.length} of the pairs conflict`}`,
  "merge.step_ended": ({ data: { merged, conflict } }) => {
    const mergedText = merged.length === 0 ? "" : `${merged.join(", ")} merged`;
    if (conflict === null) return line`${mergedText}`;
    const files = `${conflict.files.length} ${conflict.files.length === 1 ? "file" : "files"}`;
    return line`${mergedText === "" ? "" : `${mergedText}; `}${conflict.with} conflicts in ${files}`;
  },
  "merge.offered": ({ data: { run, session } }) => (run === null ? null : line`${run} resolves it in ${session}`),
  "merge.checked": ({ data: { ok, why } }) => (ok ? line`resolved` : line`not resolved: ${why ?? ""}`),
};
