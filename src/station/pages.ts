import { CaissonError } from "../contract/error/error.ts";
import { jsonOrNull } from "../lib/failures.ts";

/** The position where a page ended: the sort key of its last item, and an id that tells items with equal keys apart. */
export type PageEnd = readonly [order: string, id: string];

export const showCursor = (end: PageEnd): string => Buffer.from(JSON.stringify(end)).toString("base64url");

/** Throws `invalid` for a malformed cursor. */
export function parseCursor(text: string, what: string): PageEnd {
  const parts = jsonOrNull(Buffer.from(text, "base64url").toString("utf8"));
  if (Array.isArray(parts) && parts.length === 2 && parts.every((part) => typeof part === "string")) return parts as unknown as PageEnd;
  throw new CaissonError("invalid", `the cursor is not from a list of ${what}`, { hint: "Pass the `next` of the previous page." });
}

/** Returns a page of items that are all in memory, sorted by `endOf`, ascending or newest first. */
export function pageOf<Item>(
  items: readonly Item[],
  options: { what: string; endOf: (item: Item) => PageEnd; newestFirst: boolean; cursor?: string | undefined; limit?: number | undefined },
): { items: Item[]; next: string | null } {
  const { endOf, cursor, limit = Number.POSITIVE_INFINITY } = options;
  const direction = options.newestFirst ? -1 : 1;
  const compare = (left: PageEnd, right: PageEnd) => direction * compareEnds(left, right);
  const sorted = items.toSorted((left, right) => compare(endOf(left), endOf(right)));
  const after = cursor === undefined ? null : parseCursor(cursor, options.what);
  const rest = after === null ? sorted : sorted.filter((item) => compare(endOf(item), after) > 0);
  const page = rest.slice(0, limit);
  const last = page.at(-1);
  return { items: page, next: last !== undefined && rest.length > page.length ? showCursor(endOf(last)) : null };
}

function compareEnds(left: PageEnd, right: PageEnd): number {
  const [a, b] = left[0] === right[0] ? [left[1], right[1]] : [left[0], right[0]];
  return a === b ? 0 : a < b ? -1 : 1;
}
