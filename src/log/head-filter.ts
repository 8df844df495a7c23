import type { z } from "zod";
import type { StreamHead } from "./log.ts";

/** Which heads are asked for; what is absent is not asked about. */
export interface HeadFilter {
  prefix: string;
  /** Whether more is expected of the stream. */
  open?: boolean;
  /** Values that fields of the projection may have, the fields by their dotted paths. */
  where?: Readonly<Record<string, readonly (string | null)[]>>;
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
