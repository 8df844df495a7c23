import type { CacheRecord } from "./cache-entry.ts";

/**
 * A resource of a registry: where it is, and how it may be cached. We build it from a path in the registry's own form,
 * and never pass a client's path through.
 */
export interface Resource {
  url: URL;
  /** The Accept header to send. */
  accept: string;
  /** Its content type. Absent: the registry's own, if that is one of a few harmless ones. */
  contentType?: string;
  /** `always`: it never changes under its name. `shortly`: the registry is asked again after a few minutes. */
  keeps: "always" | "shortly";
  /** Distinguishes versions of the same URL that are rewritten for different readers. */
  variant?: string;
  /** Rewrites the whole page, so it is not streamed. Throws if the page does not have the expected form. */
  rewrite?: (page: { body: Buffer; contentType: string }) => Rewritten;
  /**
   * Returns what the content must hash to, as `sha256:hex`. Null: the registry does not list the resource, so it does
   * not exist. Throws like `Packages.obtain` if the registry cannot be asked.
   */
  digest?: () => Promise<Digest | null>;
  /** The first bytes of every file of this type, to check content that has no digest. */
  magic?: Buffer;
}

export type Digest = `${"sha1" | "sha256" | "sha384" | "sha512"}:${string}`;

export interface Rewritten {
  body: Buffer;
  contentType?: string;
  /** The digests of the listed files, by their path at the registry. */
  digests?: Iterable<readonly [path: string, digest: Digest]>;
}

/** Returns the cache key of a resource. It contains the URL, so that no upstream answers for another. */
export function keyOf(resource: Pick<Resource, "url" | "accept" | "variant">): string {
  return [resource.url.href, resource.accept, resource.variant ?? ""].join("\n");
}

export type Freshness = "hit" | "miss" | "stale";

/** A resource to serve. Its parts are read in order, each once. */
export interface Found {
  kind: "found";
  freshness: Freshness;
  contentType: string;
  /** The hash of the content; null while it is still being received. */
  sha256: string | null;
  lastModified: string | null;
  /** Null if its length was not announced. */
  bytes: number | null;
  /** The address of the registry's server that was asked; empty if none was. */
  address: string;
  /**
   * Reads the content, or a range of it if it is complete. Throws midway if the rest is not available; what was read
   * until then is incomplete.
   */
  read(range?: { start: number; end: number }): AsyncIterable<Buffer>;
  close(): Promise<void>;
}

export interface Missing {
  kind: "missing";
  freshness: Freshness;
  status: Exclude<CacheRecord["status"], 200>;
}
