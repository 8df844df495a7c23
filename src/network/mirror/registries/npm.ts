import { hexDigest, integrityDigest } from "../digest-list.ts";
import {
  at,
  notFound,
  ownAddresses,
  publicAddress,
  type Registry,
  type RegistryAddress,
  type RegistryOptions,
  type Routed,
  unknown,
} from "../registry.ts";
import type { Digest, Resource, Rewritten } from "../resource.ts";

const NAME = /^(?:@[A-Za-z0-9~][\w.~-]*\/)?[A-Za-z0-9~_][\w.~-]*$/;
const NAME_CHARS_MAX = 214;
const VERSION = /^[\w.+~-]{1,128}$/;
const TARBALL = /^[\w.+~@-]{1,255}\.tgz$/;
const full = "application/json";
/** npm's own host, and the one that yarn uses for the same registry. */
export const npmHosts = { npm: ["registry", "npmjs", "org"].join("."), yarn: ["registry", "yarnpkg", "com"].join(".") };
/** The short format, which most clients request. It omits the data that an install does not need. */
const abbreviated = "application/vnd.npm.install-v1+json";

export function npmRegistry({ upstream, packages }: RegistryOptions): Registry {
  // A page names its tarballs by the requested address, so the address is part of its cache key.
  const page = (url: URL, { accept, base }: { accept: string; base: URL }): Resource => ({
    url,
    accept,
    keeps: "shortly",
    variant: base.href,
    rewrite: ({ body }) => rewritePackage(body, { upstream, base }),
  });
  const packagePage = (name: string, how: { accept: string; base: URL }) => page(at(upstream, [name]), how);

  function tarball(name: string, file: string, base: URL): Resource {
    const path = [...name.split("/"), "-", file];
    const pages = [packagePage(name, { accept: abbreviated, base }), packagePage(name, { accept: full, base })] as const;
    return {
      url: at(upstream, path),
      accept: "*/*",
      contentType: "application/octet-stream",
      keeps: "always",
      digest: async () => (await packages.firstListed([{ pages, path: path.join("/") }]))?.digest ?? null,
    };
  }

  const route: RegistryAddress["route"] = ({ method, segments, accept, base }) => {
    if (segments[0] === "-") return service(method, segments);
    if (method !== "GET") return unknown;
    const { name, rest } = nameOf(segments);
    const [first, file] = rest;
    if (!NAME.test(name) || name.length > NAME_CHARS_MAX) return unknown;
    const resource = (resource: Resource): Routed => ({ kind: "resource", resource });
    if (first === undefined) return resource(packagePage(name, { accept: accept.includes(abbreviated) ? abbreviated : full, base }));
    if (first === "-" && file !== undefined && rest.length === 2 && TARBALL.test(file)) return resource(tarball(name, file, base));
    if (rest.length === 1 && VERSION.test(first)) return resource(page(at(upstream, [name, first]), { accept: full, base }));
    return unknown;
  };

  return {
    name: "npm",
    upstream,
    addresses: [...Object.values(npmHosts).map((host) => publicAddress(host, route)), ...ownAddresses(upstream, route)],
  };
}

/** A scoped name arrives as one segment with an encoded slash, or as two segments. */
function nameOf(segments: readonly string[]): { name: string; rest: readonly string[] } {
  const [first = "", second = ""] = segments;
  const scopeApart = first.startsWith("@") && !first.includes("/");
  return scopeApart ? { name: `${first}/${second}`, rest: segments.slice(2) } : { name: first, rest: segments.slice(1) };
}

/** Answers requests for anything other than packages, so that no client fails because of them. */
function service(method: string, segments: readonly string[]): Routed {
  const path = segments.join("/");
  if (path === "-/ping" && method === "GET") return { kind: "answer", status: 200, contentType: "application/json", body: "{}\n" };
  // An empty answer would claim that these packages have no known vulnerabilities, although we looked up none.
  if (path.startsWith("-/npm/v1/security/")) return notFound("this mirror has no list of known vulnerabilities");
  if (method === "GET") return notFound("this mirror only serves packages");
  return unknown;
}

interface Places {
  upstream: URL;
  /** The registry's address inside. */
  base: URL;
}

interface Manifest {
  dist?: { tarball?: unknown; integrity?: unknown; shasum?: unknown };
}

/**
 * Replaces the upstream's address in tarball URLs with the address that the program inside knows. Tarball URLs on other
 * hosts stay unchanged, because the registry does not vouch for them with its name.
 */
function rewritePackage(body: Buffer, places: Places): Rewritten {
  const page = JSON.parse(body.toString()) as Manifest & { versions?: Record<string, Manifest> };
  if (typeof page !== "object" || page === null) throw new Error("not an object");
  const digests: [string, Digest][] = [];
  for (const manifest of [page, ...Object.values(page.versions ?? {})]) {
    const dist = manifest?.dist;
    const path = typeof dist?.tarball === "string" ? pathBelow(dist.tarball, places.upstream) : null;
    if (dist === undefined || path === null) continue;
    dist.tarball = new URL(path, places.base).href;
    const digest = digestOf(dist);
    if (digest !== null) digests.push([decodeURIComponent(path), digest]);
  }
  return { body: Buffer.from(JSON.stringify(page)), digests };
}

function pathBelow(text: string, upstream: URL): string | null {
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  // Some registries still write http even if requested over https.
  const same = url.host === upstream.host && url.pathname.startsWith(upstream.pathname);
  return same ? url.pathname.slice(upstream.pathname.length) : null;
}

function digestOf({ integrity, shasum }: NonNullable<Manifest["dist"]>): Digest | null {
  const strong = typeof integrity === "string" ? integrityDigest(integrity) : null;
  return strong ?? (typeof shasum === "string" ? hexDigest("sha1", shasum) : null);
}
