import { createHash } from "node:crypto";
import { CaissonError } from "../contract/error.ts";
import { createPauses } from "../lib/pauses.ts";

/** What a request says of the version that its caller has, and of the part that it wants (RFC 9110). */
export interface Conditions {
  readonly ifMatch: string | null;
  readonly ifNoneMatch: string | null;
  readonly ifRange: string | null;
  readonly range: string | null;
  /** Asks for everything but the content. */
  readonly isHead: boolean;
}

export function conditionsOf({ method, headers }: Request): Conditions {
  return {
    ifMatch: headers.get("if-match"),
    ifNoneMatch: headers.get("if-none-match"),
    ifRange: headers.get("if-range"),
    range: headers.get("range"),
    isHead: method === "HEAD",
  };
}

/** Of a text as it is sent. */
export async function etagOf(pieces: readonly string[]): Promise<string> {
  const hash = createHash("sha256");
  const pause = createPauses();
  for (const piece of pieces) {
    hash.update(piece);
    await pause();
  }
  return `"${hash.digest("base64url").slice(0, 27)}"`;
}

/** Whether one of the versions in a header is this one. A weak one is the same for a reader, never for a writer. */
export function names(header: string, etag: string, { weakly }: { weakly: boolean }): boolean {
  if (header.trim() === "*") return true;
  const tags = header.match(/(?:W\/)?"[^"]*"/g) ?? [];
  return tags.some((tag) => (weakly ? tag.replace(/^W\//, "") : tag) === etag);
}

export interface Part {
  /** The first byte, and how many. */
  offset: number;
  length: number;
}

/**
 * The one part that is asked for; null for everything: also where several are, where it is not understood, or where
 * what the caller has the beginning of is another version by now. Throws `out_of_range`.
 */
export function partOf({ range, ifRange }: Conditions, { sizeBytes, etag }: { sizeBytes: number; etag: string }): Part | null {
  if (range === null || (ifRange !== null && ifRange !== etag)) return null;
  const [, first = "", last = ""] = /^bytes=([0-9]{0,15})-([0-9]{0,15})$/.exec(range.trim()) ?? [];
  if (first === "" && last === "") return null;
  const offset = first === "" ? Math.max(0, sizeBytes - Number(last)) : Number(first);
  const end = first === "" || last === "" ? sizeBytes : Math.min(Number(last) + 1, sizeBytes);
  if (first !== "" && last !== "" && Number(last) < offset) return null;
  if (offset < sizeBytes && end > offset) return { offset, length: end - offset };
  throw new CaissonError("out_of_range", `there are only ${sizeBytes} bytes`, { details: { sizeBytes } });
}

/** Throws `stale` where what is to be replaced is not what the caller knows. `etag` is null where there is nothing. */
export function checkMatch({ ifMatch, ifNoneMatch }: Conditions, etag: string | null): void {
  const isOther = ifMatch !== null && (etag === null || !names(ifMatch, etag, { weakly: false }));
  const isThere = ifNoneMatch !== null && etag !== null && names(ifNoneMatch, etag, { weakly: true });
  if (!isOther && !isThere) return;
  throw new CaissonError("stale", etag === null ? "it is not there any more" : "it is another version by now", {
    hint: "Read it again, and decide anew.",
  });
}
