import type { GuardianEvent } from "../../contract/guardian/guardian-event.ts";
import { unreachable } from "../../lib/unreachable.ts";
import { bad, bold, dim, type Line, line } from "../terminal/line.ts";

/** Shows to followers of a run what the guardian observed and did. */
export function guardianLines(event: GuardianEvent): Line[] {
  switch (event.type) {
    case "guardian.decided":
      return [line`${bad("!")} ${bold(`guardian ${event.data.action}`)} ${event.data.text} ${dim(event.data.decision)}`];
    case "guardian.settled":
      return [dim(`guardian ${event.data.effect === "progress" ? "sees progress again" : "sees no effect"}: ${event.data.text}`)];
    case "guardian.judged":
      return [
        dim(
          `guardian's judge ${event.data.coherence === null ? "gave no usable answer" : `says ${event.data.coherence}`}: ${event.data.text}`,
        ),
      ];
    default:
      return unreachable(event);
  }
}
