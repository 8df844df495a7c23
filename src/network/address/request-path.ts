/** Characters a path may hold as they are (RFC 3986), and encoded ones. */
const plainPath = /^\/(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*$/;
/**
 * Encoded dots, slashes, backslashes, percents and NUL: some servers decode before they split, some after, some twice.
 */
const encodedStructure = /%(?:2e|2f|5c|25|00)/i;
/** `;` ends a segment for servers that cut parameters off (`/..;/`). */
const dotSegment = /\/\.{1,2}(?:[/;]|$)/;

/**
 * The path of a request's target if every server reads it alike, null if not. Paths are not repaired: a rule for `/api`
 * is there to hold, so what could mean something else to the server (`/api/../admin`, `//`, `%2f`) is refused, and the
 * path that is decided on is the one that is sent.
 */
export function unambiguousPath(target: string): string | null {
  const path = pathOf(target);
  if (!plainPath.test(path) || path.includes("//") || encodedStructure.test(path) || dotSegment.test(path)) return null;
  return path;
}

/** Without its query, which may hold what is nobody's business. */
export function pathOf(target: string): string {
  const query = target.indexOf("?");
  return query === -1 ? target : target.slice(0, query);
}

/** Whether a prefix of whole segments is one of the path: `/api` of `/api` and `/api/x`, not of `/apix`. */
export function hasPathPrefix(path: string, prefix: string): boolean {
  const bare = prefix.endsWith("/") ? prefix.slice(0, -1) : prefix;
  return path === bare || path.startsWith(`${bare}/`);
}
