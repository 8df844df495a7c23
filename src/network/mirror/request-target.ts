import { decodedOrNull } from "../../lib/failures.ts";

const TARGET_CHARS_MAX = 2048;

/**
 * Returns the decoded path of a request line. No segment is empty, `.` or `..`, and a slash within a segment was
 * encoded. Returns null for a target that no registry client sends: a URL, an empty or dotted segment, a control
 * character, an invalid encoding. The query is dropped.
 */
export function pathSegments(target: string): string[] | null {
  if (target.length > TARGET_CHARS_MAX) return null;
  const path = /^(\/[^?#]*)(?:\?[^#]*)?$/.exec(target)?.[1];
  if (path === undefined) return null;
  // A trailing slash makes no difference.
  const segments = path.slice(1).replace(/\/$/, "").split("/").map(decodeSegment);
  return segments.every((segment) => segment !== null) ? segments : null;
}

function decodeSegment(segment: string): string | null {
  const text = decodedOrNull(segment);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern looks for control characters.
  if (text === null || /[\x00-\x20\x7f\\]/.test(text)) return null;
  return text.split("/").every((part) => !["", ".", ".."].includes(part)) ? text : null;
}
