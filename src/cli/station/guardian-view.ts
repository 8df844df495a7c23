import type { GuardianEvent } from "../../contract/guardian-event.ts";
import { unreachable } from "../../lib/unreachable.ts";
import { bad, bold, dim, type Line, line } from "../terminal/line.ts";

/** What the guardian saw and did, for whoever follows a run. */
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
