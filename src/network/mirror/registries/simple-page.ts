import { hexDigest } from "../digest-list.ts";
import type { Digest, Rewritten } from "../resource.ts";

interface PageOptions {
  /** What links are relative to. */
  page: URL;
  /** Hosts of files that are mirrored, by the name that their digests are kept under. */
  places: Readonly<Record<string, URL>>;
  /** Those that programs inside know by another address. */
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

/** PEP 691. Throws for what is not such a page. */
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
    // Their files are not mirrored.
    delete file["gpg-sig"];
    delete file.provenance;
  }
  return { body: Buffer.from(JSON.stringify(page)), digests };
}

/** PEP 503. The page is written anew from its links, so that nothing else of it gets through. */
export function rewriteSimpleHtml(text: string, options: PageOptions): Rewritten {
  if (!/<a\s|<html|<!doctype/i.test(text)) throw new Error("not a page of links");
  const digests: [string, Digest][] = [];
  const links = linksIn(text).flatMap(({ attributes, name }) => {
    const given = attributesOf(attributes);
    const href = given.get("href") ?? "";
    const mirrored = mirror(href, fragmentDigest(href), options);
    const kept = new Map([...given].filter(([attribute]) => ["data-requires-python", "data-yanked"].includes(attribute)));
    kept.set("href", mirrored === null ? resolved(href, options.page) : `${mirrored.url}#${mirrored.digest.replace(":", "=")}`);
    if (mirrored !== null) digests.push([mirrored.path, mirrored.digest]);
    const metadata = given.get("data-core-metadata") ?? given.get("data-dist-info-metadata") ?? "";
    const metadataDigest = mirrored === null ? null : fragmentDigest(`#${metadata}`);
    if (mirrored !== null && metadataDigest !== null) {
      digests.push([`${mirrored.path}.metadata`, metadataDigest]);
      for (const attribute of ["data-core-metadata", "data-dist-info-metadata"]) kept.set(attribute, metadata);
    }
    return [
      `<a ${[...kept].map(([attribute, value]) => `${attribute}="${escaped(value)}"`).join(" ")}>${escaped(unescaped(name))}</a><br>`,
    ];
  });
  const head = '<!DOCTYPE html>\n<html><head><meta name="pypi:repository-version" content="1.0"><title>Links</title></head><body>';
  return { body: Buffer.from(`${[head, ...links].join("\n")}\n</body></html>\n`), digests };
}

/** Null for what is not at a mirrored host, or has no digest to check it by. */
function mirror(
  href: string,
  digest: Digest | null,
  { page, places, shown }: PageOptions,
): { url: string; path: string; digest: Digest } | null {
  if (digest === null || !URL.canParse(href, page.href)) return null;
  const url = new URL(href, page);
  const place = Object.keys(places).find((name) => places[name]?.origin === url.origin);
  if (place === undefined || url.search !== "") return null;
  const { origin } = shown[place] ?? url;
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

/** What cannot be checked is not offered: the program inside then takes it from the package itself. */
function withoutMetadata(file: ListedFile): void {
  delete file["core-metadata"];
  delete file["dist-info-metadata"];
}

function resolved(href: string, page: URL): string {
  return URL.canParse(href, page.href) ? new URL(href, page).href : "";
}

/** Every `<a …>name</a>`. A page has one pass: what does not close is left behind with the bracket that it ends at. */
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
  return new Map(pairs.map(([, name = "", double, single]) => [name.toLowerCase(), unescaped(double ?? single ?? "")]));
}

const entities: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", "#x27": "'", "#34": '"', "#x22": '"' };

function unescaped(text: string): string {
  return text.replaceAll(/&(#?\w+);/g, (whole, name: string) => (Object.hasOwn(entities, name) ? (entities[name] as string) : whole));
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
