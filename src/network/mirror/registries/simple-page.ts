import { hexDigest } from "../digest-list.ts";
import type { Digest, Rewritten } from "../resource.ts";

interface PageOptions {
  /** The base of relative links. */
  page: URL;
  /** The mirrored hosts of files, by the name under which their digests are stored. */
  places: Readonly<Record<string, URL>>;
  /** The hosts that programs inside know by another address. */
  shown: Readonly<Record<string, URL>>;
}

interface ListedFile {
  filename?: unknown;
  url?: unknown;
  hashes?: unknown;
  "core-metadata"?: unknown;
  "dist-info-metadata"?: unknown;
  [other: string]: unknown;
}

/** Rewrites a PEP 691 page. Throws if the text is not such a page. */
export function rewriteSimpleJson(text: string, options: PageOptions): Rewritten {
  const page = JSON.parse(text) as { files?: ListedFile[] };
  if (!Array.isArray(page.files)) throw new Error("no files");
  const digests: [string, Digest][] = [];
  for (const file of page.files) {
    const mirrored = typeof file.url === "string" ? mirror(file.url, digestIn(file.hashes), options) : null;
    if (mirrored === null) continue;
    file.url = mirrored.url;
    digests.push([mirrored.path, mirrored.digest]);
    const metadata = digestIn(file["core-metadata"] ?? file["dist-info-metadata"]);
    if (metadata !== null) digests.push([`${mirrored.path}.metadata`, metadata]);
    else withoutMetadata(file);
    // We do not mirror the files that these fields name.
    delete file["gpg-sig"];
    delete file.provenance;
  }
  return { body: Buffer.from(JSON.stringify(page)), digests };
}

/** Rewrites a PEP 503 page. The page is rebuilt from its links, so that no other part of it gets through. */
export function rewriteSimpleHtml(text: string, options: PageOptions): Rewritten {
  if (!/<a\s|<html|<!doctype/i.test(text)) throw new Error("not a page of links");
  const digests: [string, Digest][] = [];
  const links = linksIn(text).flatMap(({ attributes, name }) => {
    const originalAttributes = attributesOf(attributes);
    const href = originalAttributes.get("href") ?? "";
    const mirrored = mirror(href, fragmentDigest(href), options);
    const newAttributes = new Map(
      [...originalAttributes].filter(([attribute]) => ["data-requires-python", "data-yanked"].includes(attribute)),
    );
    newAttributes.set("href", mirrored === null ? resolveHref(href, options.page) : `${mirrored.url}#${mirrored.digest.replace(":", "=")}`);
    if (mirrored !== null) digests.push([mirrored.path, mirrored.digest]);
    const metadata = originalAttributes.get("data-core-metadata") ?? originalAttributes.get("data-dist-info-metadata") ?? "";
    const metadataDigest = mirrored === null ? null : fragmentDigest(`#${metadata}`);
    if (mirrored !== null && metadataDigest !== null) {
      digests.push([`${mirrored.path}.metadata`, metadataDigest]);
      for (const attribute of ["data-core-metadata", "data-dist-info-metadata"]) newAttributes.set(attribute, metadata);
    }
    return [
      `<a ${[...newAttributes].map(([attribute, value]) => `${attribute}="${escapeHtml(value)}"`).join(" ")}>${escapeHtml(decodeEntities(name))}</a><br>`,
    ];
  });
  const head = '<!DOCTYPE html>\n<html><head><meta name="pypi:repository-version" content="1.0"><title>Links</title></head><body>';
  return { body: Buffer.from(`${[head, ...links].join("\n")}\n</body></html>\n`), digests };
}

/** Returns null for a link that is not to a mirrored host, or has no digest to check it by. */
function mirror(
  href: string,
  digest: Digest | null,
  { page, places, shown: aliases }: PageOptions,
): { url: string; path: string; digest: Digest } | null {
  if (digest === null || !URL.canParse(href, page.href)) return null;
  const url = new URL(href, page);
  const place = Object.keys(places).find((name) => places[name]?.origin === url.origin);
  if (place === undefined || url.search !== "") return null;
  const { origin } = aliases[place] ?? url;
  return { url: `${origin}${url.pathname}`, path: `${place}${decodeURIComponent(url.pathname)}`, digest };
}

function digestIn(hashes: unknown): Digest | null {
  if (typeof hashes !== "object" || hashes === null) return null;
  const [sha256, sha512] = ["sha256", "sha512"].map((name) => {
    const hex: unknown = Object.hasOwn(hashes, name) ? (hashes as Record<string, unknown>)[name] : null;
    return typeof hex === "string" ? hexDigest(name, hex) : null;
  });
  return sha256 ?? sha512 ?? null;
}

function fragmentDigest(href: string): Digest | null {
  const [, algorithm = "", hex = ""] = /#(sha256|sha384|sha512)=([0-9a-fA-F]+)/.exec(href) ?? [];
  return hexDigest(algorithm, hex);
}

/** Removes metadata that cannot be checked. The program inside then reads it from the package itself. */
function withoutMetadata(file: ListedFile): void {
  delete file["core-metadata"];
  delete file["dist-info-metadata"];
}

function resolveHref(href: string, page: URL): string {
  return URL.canParse(href, page.href) ? new URL(href, page).href : "";
}

/**
 * Finds every `<a …>name</a>` in one pass over the page. Skips an opening tag if the next tag after it is not `</a>`.
 */
function linksIn(text: string): { attributes: string; name: string }[] {
  const links: { attributes: string; name: string }[] = [];
  const opening = /<a\s/gi;
  const closing = /<\/a\s{0,20}>/iy;
  while (opening.test(text)) {
    const begin = opening.lastIndex;
    const end = text.indexOf(">", begin);
    const next = end < 0 ? -1 : text.indexOf("<", end);
    if (next < 0) return links;
    closing.lastIndex = next;
    if (closing.test(text)) links.push({ attributes: text.slice(begin, end), name: text.slice(end + 1, next) });
    opening.lastIndex = end + 1;
  }
  return links;
}

function attributesOf(text: string): Map<string, string> {
  const pairs = [...text.matchAll(/(?<![\w-])([\w-]{1,100})\s{0,20}=\s{0,20}(?:"([^"]*)"|'([^']*)')/g)];
  return new Map(pairs.map(([, name = "", double, single]) => [name.toLowerCase(), decodeEntities(double ?? single ?? "")]));
}

const entities: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", "#x27": "'", "#34": '"', "#x22": '"' };

function decodeEntities(text: string): string {
  return text.replaceAll(/&(#?\w+);/g, (whole, name: string) => (Object.hasOwn(entities, name) ? (entities[name] as string) : whole));
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
