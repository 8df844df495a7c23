/** What a request line asks for, decoded. */
export interface RequestTarget {
  /** Lower case, of a target in absolute form; null for one that is only a path. */
  host: string | null;
  /** None is empty, `.` or `..`; a slash in one was encoded. */
  segments: string[];
}

const TARGET_CHARS_MAX = 2048;

/**
 * Null for what no client of a registry sends: another scheme, a user, an empty or dotted segment, a control character,
 * a wrong encoding. The query is dropped.
 */
export function parseTarget(target: string): RequestTarget | null {
  if (target.length > TARGET_CHARS_MAX) return null;
  const absolute = /^http:\/\/([^/?#@]+)(\/[^?#]*)/i.exec(target);
  const path = absolute?.[2] ?? /^(\/[^?#]*)(?:\?[^#]*)?$/.exec(target)?.[1];
  if (path === undefined) return null;
  // One final slash means the same as none.
  const segments = path.slice(1).replace(/\/$/, "").split("/").map(decoded);
  return segments.every((segment) => segment !== null) ? { host: absolute?.[1]?.toLowerCase() ?? null, segments } : null;
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
