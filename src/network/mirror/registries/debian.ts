import { hexDigest } from "../digest-list.ts";
import {
  at,
  ownAddresses,
  publicAddress,
  type Registry,
  type RegistryAddress,
  type RegistryOptions,
  type RegistryRequest,
  type Routed,
  unknown,
} from "../registry.ts";
import type { Resource } from "../resource.ts";

const SEGMENT = /^[\w.+~:=@,-]{1,255}$/;
const SEGMENTS_MAX = 32;
const archives = ["debian", "debian-security"];
const packageMagic = Buffer.from("!<arch>\n");

/**
 * The hosts that Debian's own settings name. Written in parts, like npm's, because a check searches our sources and
 * lock files for stray registry addresses and must not find these.
 */
export const debianHost = ["deb", "debian", "org"].join(".");
export const debianHosts = [debianHost, "security.debian.org", "ftp.debian.org"];

/**
 * An archive: lists below `dists`, packages below `pool`. Their content is checked inside, against the signature of the
 * list of lists.
 */
export function debianRegistry({ upstream }: RegistryOptions): Registry {
  const routeRequest: RegistryAddress["route"] = (request) => route(request, upstream);
  const addresses = [...debianHosts.map((host) => publicAddress(host, routeRequest)), ...ownAddresses(upstream, routeRequest)];
  return { name: "debian", upstream, addresses };
}

function route({ method, segments }: RegistryRequest, upstream: URL): Routed {
  const [archive = "", folder] = segments;
  const wellFormed =
    archives.includes(archive) &&
    segments.length > 2 &&
    segments.length <= SEGMENTS_MAX &&
    segments.every((segment) => SEGMENT.test(segment));
  if (method !== "GET" || !wellFormed || (folder !== "dists" && folder !== "pool")) return unknown;
  const url = at(upstream, segments);
  const resource: Resource = {
    url,
    accept: "*/*",
    contentType: "application/octet-stream",
    keeps: folder === "pool" ? "always" : "shortly",
  };
  const file = segments.at(-1) ?? "";
  if (folder === "pool") return { kind: "resource", resource: file.endsWith(".deb") ? { ...resource, magic: packageMagic } : resource };
  const algorithm = /^(?:SHA(256|512|1)|MD5Sum)$/.exec(segments.at(-2) ?? "");
  if (segments.at(-3) !== "by-hash" || algorithm === null) return { kind: "resource", resource };
  const digest = hexDigest(`sha${algorithm[1]}`, file);
  if (digest === null) return algorithm[1] === undefined ? { kind: "resource", resource: { ...resource, keeps: "always" } } : unknown;
  return { kind: "resource", resource: { ...resource, keeps: "always", digest: async () => digest } };
}
