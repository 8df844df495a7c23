import type { HealthEvent } from "../../contract/health/health-event.ts";
import type { RunEvent } from "../../contract/run/run-event.ts";
import { showBytes, showDuration } from "../../lib/quantity.ts";
import { unreachable } from "../../lib/unreachable.ts";
import { bad, bold, dim, type Line, line } from "../terminal/line.ts";

type InsideEvent = Extract<RunEvent, { type: "sandbox.reported" | "artifact.stored" }>;

const SHOWN_CHARACTERS_MAX = 500;

/** Shows to followers of a run what a station observed and did, and what programs inside reported. */
export function watchLines(event: HealthEvent | InsideEvent): Line[] {
  switch (event.type) {
    case "health.changed": {
      const { subject, level, condition } = event.data;
      if (level === "ok") return [dim(`${subject.kind} ${subject.id} responds again`)];
      return [line`${bad("!")} ${bold(level)} ${subject.kind} ${subject.id} does not respond ${dim(`(${condition})`)}`];
    }
    case "health.restart_started":
      return [line`${bad("!")} ${bold("restarting")} ${event.data.why} ${dim(event.data.incident)}`];
    case "health.restart_ended": {
      const { outcome, text, durationMs } = event.data;
      return [line`${bold(outcome.replaceAll("_", " "))} ${text} ${dim(showDuration(durationMs))}`];
    }
    case "health.escalated":
      return [line`${bad("!")} ${bold("needs a person")} ${event.data.text}`];
    case "sandbox.reported":
      return [dim(`${event.data.type} ${JSON.stringify(event.data.data).slice(0, SHOWN_CHARACTERS_MAX)}`)];
    case "artifact.stored":
      return [dim(`artifact ${event.data.name} (${showBytes(event.data.bytes)})`)];
    default:
      return unreachable(event);
  }
}
