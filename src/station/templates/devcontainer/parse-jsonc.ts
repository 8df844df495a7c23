import { CaissonError } from "../../../contract/error/error.ts";

/** Parses JSON with comments and trailing commas. Throws `invalid`. */
export function parseJsonc(text: string, file: string): unknown {
  try {
    return JSON.parse(plainJson(text.replace(/^\uFEFF/, "")));
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new CaissonError("invalid", `${file} is not JSON with comments: ${cause.message.slice(0, 200)}`, { cause });
  }
}

/** Replaces comments by spaces, and removes commas before a closing bracket. */
function plainJson(text: string): string {
  const pieces: string[] = [];
  /** Where the last comma is, if only white space and comments follow it. */
  let comma = -1;
  let isAfterOpening = false;
  for (let at = 0; at < text.length; ) {
    const end = tokenEnd(text, at);
    const token = text.slice(at, end);
    at = end;
    if (token.startsWith("//") || token.startsWith("/*")) continue;
    if ((token === "}" || token === "]") && comma >= 0) pieces[comma] = "";
    if (token.trim() !== "") {
      // A comma after an opening bracket separates nothing, and JSON refuses it.
      comma = token === "," && !isAfterOpening ? pieces.length : -1;
      isAfterOpening = token === "[" || token === "{";
    }
    pieces.push(token);
  }
  return pieces.join("");
}

function tokenEnd(text: string, at: number): number {
  if (text.startsWith("//", at)) return orEnd(text.indexOf("\n", at), text);
  if (text.startsWith("/*", at)) {
    const end = text.indexOf("*/", at + 2);
    return end < 0 ? text.length : end + 2;
  }
  if (text[at] !== '"') return at + 1;
  for (let index = at + 1; index < text.length; index += 1) {
    if (text[index] === "\\") index += 1;
    else if (text[index] === '"') return index + 1;
  }
  return text.length;
}

const orEnd = (index: number, text: string) => (index < 0 ? text.length : index);
