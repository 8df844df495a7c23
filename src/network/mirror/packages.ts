import { CaissonError } from "../../contract/error.ts";
import { type Cache, openCache } from "./cache.ts";
import type { CacheEntry } from "./cache-entry.ts";
import { digestIn } from "./digest-list.ts";
import type { PackagesOptions } from "./mirror-options.ts";
import { createUpstream } from "./package-upstream.ts";
import { type Digest, type Found, type Freshness, keyOf, type Missing, type Resource } from "./resource.ts";
import { createRewriting } from "./rewriting.ts";
import { type SharedDownload, startSharedDownload } from "./shared-download.ts";

/** The things of registries, from the cache where possible. Shared by all mirrors of a process. */
export interface Packages {
  /**
   * Finds or fetches. What was kept is served when the registry cannot be asked, unless `recheck`, with which it is
   * asked in any case. Throws `unavailable`, `protocol`, `unsafe`, `too_large`, `no_space`, `denied`, and `busy` when
   * too many things are being fetched.
   */
  obtain(resource: Resource, how?: { recheck?: boolean }): Promise<Found | Missing>;
  /**
   * The first of these files that its pages list, and what they say it hashes to; null when the registry lists none of
   * them. The registry is only asked when no kept page lists any. Throws as `obtain`.
   */
  firstListed<File extends ListedFile>(files: readonly File[]): Promise<{ file: File; digest: Digest } | null>;
  /** Ends what is being fetched. */
  close(): Promise<void>;
}

/** A file that a registry may have. */
export interface ListedFile {
  /** With the same list of files in each; any of them may be kept. */
  pages: readonly [Resource, ...Resource[]];
  /** As the list calls it. */
  path: string;
}

const BYTES_MAX = 10 * 1024 ** 3;
const SHORTLY_MS = 5 * 60_000;
/** A page this young is not asked for again only because it does not list a file. */
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

  /** Null when what is kept is still what the registry has. */
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
    const kept = await cache.find(keyOf(resource));
    if (kept !== null && how.recheck !== true && isFresh(resource, kept, now())) return fromEntry(kept, "hit");
    try {
      const fetched = await fetch(resource, kept, cache);
      if (fetched === null && kept !== null) return fromEntry(kept, "hit");
      await kept?.close();
      if (fetched === null) throw new CaissonError("unavailable", "the package cache lost what was just fetched");
      return fetched;
    } catch (error) {
      if (kept !== null && how.recheck !== true) return fromEntry(kept, "stale");
      await kept?.close();
      throw error;
    }
  }

  /** What the registry's page says now of a file that no kept one lists. */
  async function askedDigest(file: ListedFile, cache: Cache): Promise<Digest | null> {
    const { digest, fetchedAtMs } = await listed(cache, file);
    if (digest !== null || now() - fetchedAtMs < JUST_NOW_MS) return digest;
    const page = await obtain(file.pages[0], { recheck: true });
    if (page.kind === "missing") return null;
    await page.close();
    return (await listed(cache, file)).digest;
  }

  return {
    obtain,
    async firstListed(files) {
      const cache = await open();
      for (const file of files) {
        const { digest } = await listed(cache, file);
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

/** What kept pages say of a file, and when the youngest of those that do not list it was fetched. */
async function listed(cache: Cache, { pages, path }: ListedFile): Promise<{ digest: Digest | null; fetchedAtMs: number }> {
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
