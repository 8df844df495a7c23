import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { CaissonError } from "../../contract/error/error.ts";
import type { Cache, Draft } from "./cache.ts";
import type { CacheRecord } from "./cache-entry.ts";
import type { Upstream, UpstreamResponse } from "./package-upstream.ts";
import { type Digest, keyOf, type Resource } from "./resource.ts";

/** The registry's answer, before the content. */
export type DownloadHead =
  | { kind: "content"; draft: Draft; contentType: string; lastModified: string | null; bytes: number | null; address: string }
  | { kind: "unchanged" }
  | { kind: "missing"; status: 404 | 410 };

export interface DownloadOptions {
  resource: Resource;
  /** The validators of the cached entry, to ask whether it has changed. */
  before: Pick<CacheRecord, "etag" | "lastModified"> | null;
  cache: Cache;
  upstream: Upstream;
  signal: AbortSignal;
  /** Turns the received page into the stored one. Only called for a resource that is rewritten. */
  rewrite: (draft: Draft, contentType: string) => Promise<RewrittenDraft>;
  /** The receiver must close the draft of the content. */
  onHead: (head: DownloadHead) => void;
  onBytes: () => void;
}

export interface RewrittenDraft {
  draft: Draft;
  contentType: string;
  sha256: string;
  list: Buffer;
}

/** The limit for an unpacked page. The longest version lists are about 100 MiB. */
const PAGE_BYTES_MAX = 128 * 1024 ** 2;
const HEADER_CHARS_MAX = 512;
/** The content types that a registry may state. Anything else is served as plain bytes. */
const contentTypes = new Set([
  "application/json",
  "application/vnd.npm.install-v1+json",
  "application/vnd.pypi.simple.v1+json",
  "application/vnd.pypi.simple.v1+html",
  "text/html",
  "text/plain",
]);

/**
 * Downloads one resource into the cache. Resolves when it is stored and verified; otherwise nothing of it is kept.
 * Throws `unavailable` and `protocol` like `Upstream.get`, `unsafe` for content that does not match the registry's own
 * list, `too_large`, `no_space`, `denied`.
 */
export async function download(options: DownloadOptions): Promise<void> {
  const { resource, cache, upstream, signal, onHead } = options;
  const digest = (await resource.digest?.()) ?? null;
  if (resource.digest !== undefined && digest === null) return onHead({ kind: "missing", status: 404 });
  const response = await upstream.get({ url: resource.url, headers: requestHeaders(options), signal });
  if (response.status !== 200) {
    response.body.destroy();
    return onHead(await withoutContent(options, response.status));
  }
  const draft = await cache.begin().catch((error: unknown) => {
    response.body.destroy();
    throw error;
  });
  const contentType = resource.contentType ?? harmlessType(response.headers["content-type"]);
  const lastModified = short(response.headers["last-modified"]);
  onHead({ kind: "content", draft, contentType, lastModified, bytes: announcedBytes(response), address: response.address });
  const sha256 = await receive({ ...options, response, draft, digest });
  const result =
    resource.rewrite === undefined ? { draft, contentType, sha256, list: undefined } : await options.rewrite(draft, contentType);
  try {
    const etag = short(response.headers.etag);
    const record = {
      key: keyOf(resource),
      status: 200,
      contentType: result.contentType,
      etag,
      lastModified,
      sha256: result.sha256,
    } as const;
    await result.draft.keep(record, result.list);
  } finally {
    if (result.draft !== draft) await result.draft.close();
  }
}

function requestHeaders({ resource, before }: DownloadOptions): Record<string, string> {
  return {
    accept: resource.accept,
    // Files are received unchanged. Most are compressed anyway, and their digests cover that form.
    "accept-encoding": resource.rewrite === undefined ? "identity" : "gzip",
    ...(before?.etag ? { "if-none-match": before.etag } : {}),
    ...(before?.lastModified ? { "if-modified-since": before.lastModified } : {}),
  };
}

async function withoutContent({ resource, before, cache }: DownloadOptions, status: number): Promise<DownloadHead> {
  const key = keyOf(resource);
  if (status === 304 && before !== null) {
    await cache.confirm(key);
    return { kind: "unchanged" };
  }
  if (status !== 404 && status !== 410 && status !== 451) {
    throw new CaissonError("unavailable", `${resource.url.host} answered ${status} for ${resource.url.pathname}`);
  }
  const missing = status === 404 ? 404 : 410;
  // A missing file may exist tomorrow. Only a missing page is cached, as briefly as the page itself would be.
  if (resource.keeps === "shortly") {
    const draft = await cache.begin();
    await draft
      .keep({ key, status: missing, contentType: "text/plain", etag: null, lastModified: null, sha256: sha256Of(Buffer.alloc(0)) })
      .finally(() => draft.close());
  }
  return { kind: "missing", status: missing };
}

interface ReceiveOptions extends DownloadOptions {
  response: UpstreamResponse;
  draft: Draft;
  digest: Digest | null;
}

/** Returns the SHA-256 of the content that was received and written. */
async function receive({ resource, response, draft, digest, onBytes }: ReceiveOptions): Promise<string> {
  const { headers } = response;
  // Without a length or chunks, a truncated transfer looks complete.
  if (digest === null && headers["content-length"] === undefined && headers["transfer-encoding"] === undefined) {
    response.body.destroy();
    throw new CaissonError("protocol", `${resource.url.host} did not state the length of its answer`);
  }
  const sha256 = createHash("sha256");
  const [algorithm, expected] = digest?.split(":") ?? [];
  const other = algorithm === undefined || algorithm === "sha256" ? null : createHash(algorithm);
  const bytesMax = resource.rewrite === undefined ? Number.POSITIVE_INFINITY : PAGE_BYTES_MAX;
  try {
    for await (const chunk of unpackBody(response, resource) as AsyncIterable<Buffer>) {
      if (draft.bytes === 0) checkMagic(resource, chunk);
      sha256.update(chunk);
      other?.update(chunk);
      if (draft.bytes + chunk.length > bytesMax)
        throw new CaissonError("too_large", `${resource.url.pathname} is longer than ${bytesMax} bytes`);
      await draft.write(chunk);
      onBytes();
    }
  } catch (error) {
    response.body.destroy();
    if (error instanceof CaissonError) throw error;
    throw new CaissonError("unavailable", `${resource.url.host} broke off in the middle of ${resource.url.pathname}`, { cause: error });
  }
  const sum = sha256.digest("hex");
  if (expected !== undefined && (other?.digest("hex") ?? sum) !== expected) {
    throw new CaissonError(
      "unsafe",
      `${resource.url.pathname} of ${resource.url.host} does not match the digest in the registry's own list (${digest})`,
    );
  }
  return sum;
}

function unpackBody(response: UpstreamResponse, resource: Resource): Readable {
  if (resource.rewrite === undefined || response.headers["content-encoding"] !== "gzip") return response.body;
  const gunzip = createGunzip();
  response.body.once("error", (error) => gunzip.destroy(error));
  gunzip.once("close", () => response.body.destroy());
  return response.body.pipe(gunzip);
}

function checkMagic({ magic, url }: Resource, first: Buffer): void {
  if (magic !== undefined && !first.subarray(0, magic.length).equals(magic.subarray(0, first.length))) {
    throw new CaissonError("unsafe", `the answer of ${url.host} for ${url.pathname} is not a file of the expected type`);
  }
}

function announcedBytes({ headers }: UpstreamResponse): number | null {
  const length = headers["content-length"];
  return length !== undefined && /^\d{1,15}$/.test(length) ? Number(length) : null;
}

function harmlessType(contentType: string | undefined): string {
  const type = contentType?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  return contentTypes.has(type) ? type : "application/octet-stream";
}

function short(header: string | undefined): string | null {
  return header === undefined || header.length > HEADER_CHARS_MAX ? null : header;
}

export function sha256Of(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
