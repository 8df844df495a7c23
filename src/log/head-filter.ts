import type { z } from "zod";
import type { StreamHead } from "./log.ts";

/** Selects heads. An absent member does not filter. */
export interface HeadFilter {
  prefix: string;
  /** Whether more events are expected in the stream. */
  open?: boolean;
  /** The accepted values of fields of the projection, by their dotted paths. */
  where?: Readonly<Record<string, readonly (string | null)[]>>;
  /** Terms of the projection; a head must have all of them. */
  terms?: readonly string[];
  /** The time of the last change: at or after `from`, and before `before`, as ISO times. */
  updated?: { from?: string; before?: string };
  /** For conditions that the other members cannot express. Closed streams are then checked one by one. */
  matches?: (head: z.core.util.JSONType) => boolean;
}

/** Returns whether a single head passes the filter, for heads that are checked one by one. */
export function passesFilter(
  { head, at, isOpen }: Pick<StreamHead, "head" | "at"> & { isOpen: boolean },
  { open, where, terms = [], updated = {}, matches }: HeadFilter,
  termsOf: (head: z.core.util.JSONType) => readonly string[],
): boolean {
  return (
    (open === undefined || isOpen === open) &&
    matchesHead(head, where) &&
    (terms.length === 0 || terms.every((term) => termsOf(head).includes(term))) &&
    (updated.from === undefined || at >= updated.from) &&
    (updated.before === undefined || at < updated.before) &&
    (matches === undefined || matches(head))
  );
}

/** The end of a page of heads; the next page begins after it. */
export type HeadCursor = Pick<StreamHead, "at" | "stream">;

export function matchesHead(head: z.core.util.JSONType, where: HeadFilter["where"] = {}): boolean {
  return Object.entries(where).every(([path, values]) => values.includes(valueAt(head, path) as string | null));
}

/** Sorts newest first, then by name. */
export function compareHeads(a: HeadCursor, b: HeadCursor): number {
  if (a.at !== b.at) return a.at < b.at ? 1 : -1;
  return a.stream === b.stream ? 0 : a.stream < b.stream ? -1 : 1;
}

function valueAt(head: z.core.util.JSONType, path: string): unknown {
  let value: unknown = head;
  for (const name of path.split(".")) value = (value as Record<string, unknown> | null | undefined)?.[name];
  return value ?? null;
}
