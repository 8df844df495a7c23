import { createPauses } from "../lib/pauses.ts";

/** The approximate size of a piece. */
const PIECE_CHARACTERS = 64 * 1024;

/**
 * Serializes like `JSON.stringify`, but in pieces. Writes list items one by one and yields to the event loop in
 * between, which a page of large events would block for a tenth of a second.
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
