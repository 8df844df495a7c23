import { CaissonError } from "../contract/error/error.ts";

/** Parses the sequence number of a stream's last event. Throws `invalid`. */
export function sequenceOf(lastEventId: string): number {
  if (/^[0-9]{1,15}$/.test(lastEventId)) return Number(lastEventId);
  throw new CaissonError("invalid", `Last-Event-ID ${JSON.stringify(lastEventId.slice(0, 100))} is not a number`, {
    hint: "Send the id of the last event that you received.",
  });
}
