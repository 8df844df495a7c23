import { createHash } from "node:crypto";
import { CaissonError } from "../contract/error/error.ts";
import { createPauses } from "../lib/pauses.ts";

/** The conditions of a request: the version that its caller has, and the range that it requests (RFC 9110). */
export interface Conditions {
  readonly ifMatch: string | null;
  readonly ifNoneMatch: string | null;
  readonly ifRange: string | null;
  readonly range: string | null;
  /** Whether the caller requests everything but the content. */
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

/** Returns the ETag of a text as it is sent. */
export async function etagOf(pieces: readonly string[]): Promise<string> {
  const hash = createHash("sha256");
  const pause = createPauses();
  for (const piece of pieces) {
    hash.update(piece);
    await pause();
  }
  return `"${hash.digest("base64url").slice(0, 27)}"`;
}

/** Whether a header lists this version. A weak tag matches for readers, never for writers. */
export function names(header: string, etag: string, { weakly }: { weakly: boolean }): boolean {
  if (header.trim() === "*") return true;
  const tags = header.match(/(?:W\/)?"[^"]*"/g) ?? [];
  return tags.some((tag) => (weakly ? tag.replace(/^W\//, "") : tag) === etag);
}

export interface Part {
  /** The first byte and the length. */
  offset: number;
  length: number;
}

/**
 * Returns the single range that the caller requests. Returns null, for the whole content, if there are several ranges,
 * if the header is malformed, or if the caller's partial content is of another version. Throws `out_of_range`.
 */
export function partOf({ range, ifRange }: Conditions, { sizeBytes, etag }: { sizeBytes: number; etag: string }): Part | null {
  if (range === null || (ifRange !== null && ifRange !== etag)) return null;
  const [, first = "", last = ""] = /^bytes=([0-9]{0,15})-([0-9]{0,15})$/.exec(range.trim()) ?? [];
  if (first === "" && last === "") return null;
  const offset = first === "" ? Math.max(0, sizeBytes - Number(last)) : Number(first);
  const end = first === "" || last === "" ? sizeBytes : Math.min(Number(last) + 1, sizeBytes);
  if (first !== "" && last !== "" && Number(last) < offset) return null;
  if (offset < sizeBytes && end > offset) return { offset, length: end - offset };
  throw new CaissonError("out_of_range", `the content has only ${sizeBytes} bytes`, { details: { sizeBytes } });
}

/**
 * Throws `stale` if the version to be replaced is not the one that the caller knows. `etag` is null if nothing exists.
 */
export function checkMatch({ ifMatch, ifNoneMatch }: Conditions, etag: string | null): void {
  const isOther = ifMatch !== null && (etag === null || !names(ifMatch, etag, { weakly: false }));
  const isThere = ifNoneMatch !== null && etag !== null && names(ifNoneMatch, etag, { weakly: true });
  if (!isOther && !isThere) return;
  throw new CaissonError("stale", etag === null ? "the file no longer exists" : "the file is not the expected version", {
    hint: "Read it again, then retry with its current ETag.",
  });
}
