import { createPauses } from "../lib/pauses.ts";

/** Items are put together into pieces of about this size. */
const PIECE_CHARACTERS = 64 * 1024;

/**
 * The text that `JSON.stringify` gives, in pieces. Items of lists are written one by one, and the event loop has turns
 * in between: a page of large events would hold it for a tenth of a second.
 */
export async function jsonPieces(value: unknown): Promise<string[]> {
  if (typeof value !== "object" || value === null || Array.isArray(value) || "toJSON" in value) return [JSON.stringify(value)];
  const pieces: string[] = [];
  const pause = createPauses();
  let text = "{";
  let hasFields = false;
  for (const [name, field] of Object.entries(value)) {
    const isList = Array.isArray(field);
    const whole = isList ? "[" : JSON.stringify(field);
    if (whole === undefined) continue;
    text += `${hasFields ? "," : ""}${JSON.stringify(name)}:${whole}`;
    hasFields = true;
    if (!isList) continue;
    for (let at = 0; at < field.length; at++) {
      text += `${at === 0 ? "" : ","}${JSON.stringify(field[at]) ?? "null"}`;
      if (text.length >= PIECE_CHARACTERS) {
        pieces.push(text);
        text = "";
      }
      await pause();
    }
    text += "]";
  }
  return [...pieces, `${text}}`];
}
