import type { DrivenEvent } from "../../contract/driven-event.ts";
import { isDrivenEvent } from "../../contract/is-driven-event.ts";
import type { MergeEvent } from "../../contract/merge-event.ts";
import type { MergeView } from "../../contract/merge-verbs.ts";
import { bold, dim, type Line, line, quotedName } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

const FILES_SHOWN = 20;

const kinds = {
  content: "changed by both",
  added_twice: "made by both",
  changed_and_removed: "changed by one, removed by the other",
  not_text: "changed by both, not text",
  renamed: "moved by one",
} as const;

/** A merge for people. */
export function mergeLines(view: MergeView): Line[] {
  const rows: [string, string][] = [
    ["status", view.finish ?? view.status],
    ["of", view.sessions.join(", ")],
    ["order", view.order?.join(", ") ?? ""],
    ["in", view.merged.join(", ")],
    ["result", view.result ?? ""],
    ["says", view.text ?? ""],
  ];
  const told = rows.filter(([, value]) => value !== "").map(([name, value]) => [dim(`  ${name}`), value]);
  return [bold(view.id), ...table(told), ...(view.conflict === null || view.finish !== null ? [] : [line``, ...conflictLines(view)])];
}

/** What has to be resolved, and how. */
export function conflictLines({ id, conflict }: MergeView): Line[] {
  if (conflict === null) return [];
  const { with: session, files, session: place, run, why } = conflict;
  const rows = files.slice(0, FILES_SHOWN).map(({ path, kind }) => ["  ", quotedName(path), kinds[kind]]);
  return [
    line`${session} does not go together with what was merged before it:`,
    ...table(rows),
    ...(files.length > FILES_SHOWN ? [dim(`  and ${files.length - FILES_SHOWN} more`)] : []),
    ...(why === null ? [] : [line`The last resolution was none: ${why}`]),
    ...(run !== null || place === null
      ? []
      : [
          dim(
            `Resolve it in the session ${place}: caisson run "…" --session ${place}; then: caisson merge resume ${id} [--take PATH=merged|theirs]`,
          ),
        ]),
  ];
}

/** What happens, as it happens. Null for what nobody wants to read. */
export function progressLine(event: MergeEvent | DrivenEvent): Line | null {
  if (isDrivenEvent(event)) return null;
  switch (event.type) {
    case "merge.planned": {
      const { order, clashes } = event.data;
      return line`order: ${order.join(", ")}${clashes.length === 0 ? "" : `; ${clashes.length} of the pairs conflict`}`;
    }
    case "merge.step_ended": {
      const { merged, conflict } = event.data;
      const told = merged.length === 0 ? "" : `${merged.join(", ")} merged`;
      if (conflict === null) return line`${told}`;
      return line`${told === "" ? "" : `${told}; `}${conflict.with} conflicts in ${conflict.files.length} ${conflict.files.length === 1 ? "file" : "files"}`;
    }
    case "merge.offered":
      return event.data.run === null ? null : line`${event.data.run} resolves it in ${event.data.session}`;
    case "merge.checked":
      return event.data.ok ? line`resolved` : line`not resolved: ${event.data.why ?? ""}`;
    case "merge.begun":
    case "merge.plan_started":
    case "merge.step_started":
    case "merge.offer_started":
    case "merge.answered":
    case "merge.publish_started":
    case "merge.published":
    case "merge.failed":
    case "merge.cleanup_started":
    case "merge.cleaned_up":
      return null;
    default:
      // A new event does not compile until it is named above.
      event satisfies never;
      return null;
  }
}
