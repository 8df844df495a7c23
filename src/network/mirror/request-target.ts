const TARGET_CHARS_MAX = 2048;

/**
 * The path that a request line asks for, decoded: no segment is empty, `.` or `..`, and a slash in one was encoded.
 * Null for what no client of a registry sends: a URL, an empty or dotted segment, a control character, a wrong
 * encoding. The query is dropped.
 */
export function pathSegments(target: string): string[] | null {
  if (target.length > TARGET_CHARS_MAX) return null;
  const path = /^(\/[^?#]*)(?:\?[^#]*)?$/.exec(target)?.[1];
  if (path === undefined) return null;
  // One final slash means the same as none.
  const segments = path.slice(1).replace(/\/$/, "").split("/").map(decoded);
  return segments.every((segment) => segment !== null) ? segments : null;
}

function decoded(segment: string): string | null {
  try {
    const text = decodeURIComponent(segment);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
    const plain = !/[\x00-\x20\x7f\\]/.test(text);
    return plain && text.split("/").every((part) => !["", ".", ".."].includes(part)) ? text : null;
  } catch {
    return null;
  }
}
