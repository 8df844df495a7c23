import type { RunEvent } from "../../contract/run/run-event.ts";
import { createRunView, type RunView } from "../runs/run-view.ts";
import type { Line } from "../terminal/line.ts";
import { inlineDiff } from "./inline-diff.ts";

/**
 * Shows a run's events as a conversation. Leaves out what the user typed or sees below the prompt anyway, and shows
 * file changes with the call that made them.
 */
export function createChatView(options: { columns: () => number }): RunView {
  const view = createRunView(options);
  /**
   * Whether a turn has started but made no step. Until its first step, messages are the user's own input and our note.
   */
  let isOpening = false;
  const isTyped = (event: RunEvent): boolean => {
    if (event.type === "run.reopened") isOpening = true;
    if (event.type === "step.started") isOpening = false;
    return isOpening && (event.type === "run.reopened" || event.type === "run.queued" || event.type === "message.received");
  };
  const calls = new Map<string, { name: string; args: unknown }>();
  const diffOf = (event: RunEvent): Line[] => {
    if (event.type !== "tool.ended") return [];
    const call = calls.get(event.data.call);
    calls.delete(event.data.call);
    if (call === undefined || event.data.outcome !== "ok") return [];
    return inlineDiff(call.name, call.args, { columns: options.columns() });
  };
  return {
    live: (columns) => view.live(columns),
    takeFigures: (run) => view.takeFigures(run),
    lines(event) {
      if (event.type === "tool.requested") calls.set(event.data.call, { name: event.data.name, args: event.data.arguments });
      const lines = view.lines(event);
      return isTyped(event) || isLeftOut(event) ? [] : [...lines, ...diffOf(event)];
    },
  };
}

function isLeftOut(event: RunEvent): boolean {
  return event.type === "run.created" || event.type === "run.sandboxed" || event.type === "step.started";
}
