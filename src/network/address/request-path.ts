/** A path of characters that RFC 3986 allows as they are, and of percent-encoded ones. */
const plainPath = /^\/(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*$/;
/**
 * Encoded dots, slashes, backslashes, percent signs and NUL: some servers decode before they split the path, some
 * after, some twice.
 */
const encodedStructure = /%(?:2e|2f|5c|25|00)/i;
/** `;` ends a segment for servers that strip path parameters (`/..;/`). */
const dotSegment = /\/\.{1,2}(?:[/;]|$)/;

/**
 * Returns the path of a request target if every server reads it the same way, otherwise null. We never repair a path. A
 * rule for `/api` must hold, so we refuse every path that a server could read differently (`/api/../admin`, `//`,
 * `%2f`), and we send exactly the path that we checked.
 */
export function unambiguousPath(target: string): string | null {
  const path = pathOf(target);
  if (!plainPath.test(path) || path.includes("//") || encodedStructure.test(path) || dotSegment.test(path)) return null;
  return path;
}

/** Returns the target without its query, which may contain sensitive data. */
export function pathOf(target: string): string {
  const query = target.indexOf("?");
  return query === -1 ? target : target.slice(0, query);
}

/** Checks whether a prefix covers whole segments of the path: `/api` covers `/api` and `/api/x`, but not `/apix`. */
export function hasPathPrefix(path: string, prefix: string): boolean {
  const bare = prefix.endsWith("/") ? prefix.slice(0, -1) : prefix;
  return path === bare || path.startsWith(`${bare}/`);
}
