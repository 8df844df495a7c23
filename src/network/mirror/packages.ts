import { CaissonError } from "../../contract/error/error.ts";
import { type Cache, openCache } from "./cache.ts";
import type { CacheEntry } from "./cache-entry.ts";
import { digestIn } from "./digest-list.ts";
import type { PackagesOptions } from "./mirror-options.ts";
import { createUpstream } from "./package-upstream.ts";
import { type Digest, type Found, type Freshness, keyOf, type Missing, type Resource } from "./resource.ts";
import { createRewriting } from "./rewriting.ts";
import { type SharedDownload, startSharedDownload } from "./shared-download.ts";

/** The contents of registries, from the cache if possible. Shared by all mirrors of a process. */
export interface Packages {
  /**
   * Finds or fetches a resource. If the registry cannot be asked, returns the cached resource. With `recheck`, always
   * asks the registry and throws if that fails. Throws `unavailable`, `protocol`, `unsafe`, `too_large`, `no_space`,
   * `denied`, and `busy` if too many resources are being fetched.
   */
  obtain(resource: Resource, how?: { recheck?: boolean }): Promise<Found | Missing>;
  /**
   * Returns the first of these files that its pages list, with its listed digest, or null if the registry lists none of
   * them. Asks the registry only if no cached page lists any. Throws like `obtain`.
   */
  firstListed<File extends ListedFile>(files: readonly File[]): Promise<{ file: File; digest: Digest } | null>;
  /** Ends the downloads in progress. */
  close(): Promise<void>;
}

/** A file that a registry may have. */
export interface ListedFile {
  /** Each page has the same list of files, and any of the pages may be cached. */
  pages: readonly [Resource, ...Resource[]];
  /** The path that the list uses. */
  path: string;
}

const BYTES_MAX = 10 * 1024 ** 3;
const SHORTLY_MS = 5 * 60_000;
/** A page this young is not requested again merely because it does not list a file. */
const JUST_NOW_MS = 10_000;
const FLIGHTS_MAX = 256;
const CHUNK_BYTES = 256 * 1024;

export function openPackages(options: PackagesOptions & { now?: () => number }): Packages {
  const { cacheDir, offline = false, now = Date.now } = options;
  const upstream = createUpstream(options);
  const downloads = new Map<string, SharedDownload>();
  const rewrite = createRewriting();
  let opening: Promise<Cache> | undefined;
  const open = () => (opening ??= openCache({ folder: cacheDir, bytesMax: options.bytesMax ?? BYTES_MAX, now }));

  function downloadOf(resource: Resource, before: CacheEntry | null, cache: Cache): SharedDownload {
    const key = keyOf(resource);
    const known = downloads.get(key);
    if (known !== undefined) return known;
    if (downloads.size >= FLIGHTS_MAX) throw new CaissonError("busy", "too many packages are being fetched at once");
    const download = startSharedDownload({
      resource,
      before: before?.record.status === 200 ? before.record : null,
      cache,
      upstream,
      rewrite: (draft, contentType) => rewrite({ resource, draft, contentType, cache }),
      onOver: () => downloads.delete(key),
    });
    downloads.set(key, download);
    return download;
  }

  /** Returns null if the cached entry is still current. */
  async function fetch(resource: Resource, before: CacheEntry | null, cache: Cache): Promise<Found | Missing | null> {
    if (offline)
      throw new CaissonError("unavailable", `${resource.url.href} is not in the package cache, and the mirror is offline`, {
        details: { offline },
      });
    const download = downloadOf(resource, before, cache);
    download.join();
    let leaves = true;
    try {
      const head = await download.head;
      if (head.kind === "unchanged") return null;
      if (head.kind === "missing") return { kind: "missing", freshness: "miss", status: head.status };
      if (resource.rewrite === undefined) {
        leaves = false;
        return fromDownload(download, head);
      }
      await download.cached;
      const entry = await cache.find(keyOf(resource));
      return entry === null ? null : fromEntry(entry, "miss", head.address);
    } finally {
      if (leaves) download.leave();
    }
  }

  async function obtain(resource: Resource, how: { recheck?: boolean } = {}): Promise<Found | Missing> {
    const cache = await open();
    const entry = await cache.find(keyOf(resource));
    if (entry !== null && how.recheck !== true && isFresh(resource, entry, now())) return fromEntry(entry, "hit");
    try {
      const fetched = await fetch(resource, entry, cache);
      if (fetched === null && entry !== null) return fromEntry(entry, "hit");
      await entry?.close();
      if (fetched === null) throw new CaissonError("unavailable", "the package cache lost the package that was just fetched");
      return fetched;
    } catch (error) {
      if (entry !== null && how.recheck !== true) return fromEntry(entry, "stale");
      await entry?.close();
      throw error;
    }
  }

  /** Returns what the registry's current page says about a file that no cached page lists. */
  async function askedDigest(file: ListedFile, cache: Cache): Promise<Digest | null> {
    const { digest, fetchedAtMs } = await findListedDigest(cache, file);
    if (digest !== null || now() - fetchedAtMs < JUST_NOW_MS) return digest;
    const page = await obtain(file.pages[0], { recheck: true });
    if (page.kind === "missing") return null;
    await page.close();
    return (await findListedDigest(cache, file)).digest;
  }

  return {
    obtain,
    async firstListed(files) {
      const cache = await open();
      for (const file of files) {
        const { digest } = await findListedDigest(cache, file);
        if (digest !== null) return { file, digest };
      }
      for (const file of files) {
        const digest = await askedDigest(file, cache);
        if (digest !== null) return { file, digest };
      }
      return null;
    },
    async close() {
      const ending = [...downloads.values()];
      for (const download of ending) download.cancel();
      await Promise.allSettled(ending.map(({ cached }) => cached));
      upstream.close();
      if (opening !== undefined) await (await opening).close();
    },
  };
}

function isFresh(resource: Resource, { record, fetchedAtMs }: CacheEntry, nowMs: number): boolean {
  const age = nowMs - fetchedAtMs;
  return (resource.keeps === "always" && record.status === 200) || (age >= 0 && age < SHORTLY_MS);
}

/** Returns what cached pages say about a file, and when the youngest page that does not list it was fetched. */
async function findListedDigest(cache: Cache, { pages, path }: ListedFile): Promise<{ digest: Digest | null; fetchedAtMs: number }> {
  let youngestAtMs = Number.NEGATIVE_INFINITY;
  for (const page of pages) {
    const entry = await cache.find(keyOf(page));
    if (entry === null) continue;
    const digest = digestIn(await entry.list().finally(() => entry.close()), path);
    if (digest !== null) return { digest, fetchedAtMs: entry.fetchedAtMs };
    youngestAtMs = Math.max(youngestAtMs, entry.fetchedAtMs);
  }
  return { digest: null, fetchedAtMs: youngestAtMs };
}

async function fromEntry(entry: CacheEntry, freshness: Freshness, address = ""): Promise<Found | Missing> {
  const { status, contentType, sha256, lastModified, bytes } = entry.record;
  if (status !== 200) {
    await entry.close();
    return { kind: "missing", freshness, status };
  }
  return {
    kind: "found",
    freshness,
    contentType,
    sha256,
    lastModified,
    bytes,
    address,
    async *read({ start, end } = { start: 0, end: bytes }) {
      for (let position = start; position < end; position += CHUNK_BYTES) {
        yield await entry.read(position, Math.min(CHUNK_BYTES, end - position));
      }
    },
    close: () => entry.close(),
  };
}

function fromDownload(download: SharedDownload, head: Extract<Awaited<SharedDownload["head"]>, { kind: "content" }>): Found {
  const { contentType, lastModified, bytes, address } = head;
  let closed = false;
  return {
    kind: "found",
    freshness: "miss",
    contentType,
    sha256: null,
    lastModified,
    bytes,
    address,
    read: () => download.read(),
    async close() {
      if (!closed) download.leave();
      closed = true;
    },
  };
}
