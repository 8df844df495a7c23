import type { CacheRecord } from "./cache-entry.ts";

/**
 * One thing of a registry: where it is, and how it may be kept. Made from a path that was found to be of the registry's
 * own shape, never passed through.
 */
export interface Resource {
  url: URL;
  /** The Accept header sent. */
  accept: string;
  /** What it is told to be; absent: what the registry says, when that is among a few harmless ones. */
  contentType?: string;
  /** `always`: it never changes under its name. `shortly`: after a few minutes the registry is asked again. */
  keeps: "always" | "shortly";
  /** Sets apart what is rewritten for different readers of the same URL. */
  variant?: string;
  /** The whole is needed to make what is served, so it is not streamed. Throws for what is not of the expected form. */
  rewrite?: (page: { body: Buffer; contentType: string }) => Rewritten;
  /**
   * What the content must hash to, as `sha256:hex`. Null: the registry does not know of such a thing, so there is none.
   * Throws as `Packages.obtain` does when the registry cannot be asked.
   */
  digest?: () => Promise<Digest | null>;
  /** For what has no digest at hand: how such a file begins. */
  magic?: Buffer;
}

export type Digest = `${"sha1" | "sha256" | "sha384" | "sha512"}:${string}`;

export interface Rewritten {
  body: Buffer;
  contentType?: string;
  /** Of the files the page lists, by their path at the registry. */
  digests?: Iterable<readonly [path: string, digest: Digest]>;
}

/** Under which the cache has it. The URL is part of it, so that another upstream never answers for this one. */
export function keyOf(resource: Pick<Resource, "url" | "accept" | "variant">): string {
  return [resource.url.href, resource.accept, resource.variant ?? ""].join("\n");
}

export type Freshness = "hit" | "miss" | "stale";

/** Something to be served: its parts are read in order, each once. */
export interface Found {
  kind: "found";
  freshness: Freshness;
  contentType: string;
  /** Of the content; null while it is still being received. */
  sha256: string | null;
  lastModified: string | null;
  /** Null when it is received without having been told its length. */
  bytes: number | null;
  /** Throws in the middle when the rest cannot be had: what was read so far is then not the whole. */
  /** Of the registry's server that was asked for it; empty when none was. */
  address: string;
  /** A range can be asked of what is whole. */
  read(range?: { start: number; end: number }): AsyncIterable<Buffer>;
  close(): Promise<void>;
}

export interface Missing {
  kind: "missing";
  freshness: Freshness;
  status: Exclude<CacheRecord["status"], 200>;
}
