import type { z } from "zod";
import type { StreamHead } from "./log.ts";

/** Which heads are asked for; what is absent is not asked about. */
export interface HeadFilter {
  prefix: string;
  /** Whether more is expected of the stream. */
  open?: boolean;
  /** Values that fields of the projection may have, the fields by their dotted paths. */
  where?: Readonly<Record<string, readonly (string | null)[]>>;
  /** Of the projection's own terms, all of these. */
  terms?: readonly string[];
  /** Changed last from this time on, and before that one; both as the log writes times. */
  updated?: { from?: string; before?: string };
  /** What cannot be said otherwise; closed streams are looked at one after the other for it. */
  matches?: (head: z.core.util.JSONType) => boolean;
}

/** Whether a head passes, by itself: for those that are looked at one by one. */
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

/** Where a page of heads ended: the next one begins after it. */
export type HeadCursor = Pick<StreamHead, "at" | "stream">;

export function matchesHead(head: z.core.util.JSONType, where: HeadFilter["where"] = {}): boolean {
  return Object.entries(where).every(([path, values]) => values.includes(valueAt(head, path) as string | null));
}

/** Newest first; of one instant by name. */
export function compareHeads(a: HeadCursor, b: HeadCursor): number {
  if (a.at !== b.at) return a.at < b.at ? 1 : -1;
  return a.stream === b.stream ? 0 : a.stream < b.stream ? -1 : 1;
}

function valueAt(head: z.core.util.JSONType, path: string): unknown {
  let value: unknown = head;
  for (const name of path.split(".")) value = (value as Record<string, unknown> | null | undefined)?.[name];
  return value ?? null;
}
