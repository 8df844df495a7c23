import type { CaissonError } from "../../contract/error/error.ts";
import type { ShipStep } from "../../contract/ship/ship.ts";
import type { NewShipEvent } from "../../contract/ship/ship-event.ts";
import { pauseAfter } from "./decide-ship.ts";

const MESSAGE_CHARACTERS_MAX = 2000;
const HINT_CHARACTERS_MAX = 1000;

/** Returns the event that records a failed step and the time of its next attempt. */
export function stepFailure(
  { code, message, hint, retryable, details }: CaissonError,
  { step, attempt, nowMs }: { step: ShipStep; attempt: number; nowMs: number },
): NewShipEvent {
  const retryAfterMs = Number(details?.retryAfterMs ?? 0);
  const pauseMs = retryable ? pauseAfter(step, { attempt, retryAfterMs }) : null;
  const words = {
    message: message.slice(0, MESSAGE_CHARACTERS_MAX),
    ...(hint !== undefined && { hint: hint.slice(0, HINT_CHARACTERS_MAX) }),
  };
  const nextAt = pauseMs === null ? null : new Date(nowMs + pauseMs).toISOString();
  return { type: "ship.step_failed", data: { step, attempt, error: { code, ...words }, nextAt } };
}
