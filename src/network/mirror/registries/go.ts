import {
  at,
  ownAddresses,
  publicAddress,
  type Registry,
  type RegistryAddress,
  type RegistryOptions,
  type Routed,
  unknown,
} from "../registry.ts";
import type { Resource } from "../resource.ts";

const MODULE_SEGMENT = /^[a-z0-9!_~-][a-z0-9!._~-]{0,127}$/;
const SEGMENTS_MAX = 32;
/** A branch, or a tag of another form, is a query whose answer changes. */
const CANONICAL = /^v\d+\.\d+\.\d+[\w.!+-]*$/;
const VERSION = /^[\w.!+~-]{1,200}$/;
const TILE = /^[\w.]{1,16}$/;
/** The only checksum database that we serve. Programs inside verify its signatures. */
const sumDatabase = "sum.golang.org";
export const goHost = "proxy.golang.org";
const types: Record<string, string> = { info: "application/json", mod: "text/plain", zip: "application/zip" };
const zipMagic = Buffer.from("PK");

/** The GOPROXY protocol. Programs inside check modules against go.sum and the checksum database. */
export function goRegistry({ upstream }: RegistryOptions): Registry {
  const resource = (path: readonly string[], how: Pick<Resource, "keeps" | "contentType" | "magic">): Routed => ({
    kind: "resource",
    resource: { url: at(upstream, path), accept: "*/*", ...how },
  });

  function sums(path: readonly string[]): Routed {
    const [, database, kind = "", ...rest] = path;
    if (database !== sumDatabase) return unknown;
    if (rest.length === 0)
      return ["supported", "latest"].includes(kind) ? resource(path, { keeps: "shortly", contentType: "text/plain" }) : unknown;
    if (kind === "tile")
      return rest.every((segment) => TILE.test(segment))
        ? resource(path, { keeps: "always", contentType: "application/octet-stream" })
        : unknown;
    const [name = "", version = ""] = (rest.at(-1) ?? "").split("@");
    const isLookup =
      kind === "lookup" && [...rest.slice(0, -1), name].every((segment) => MODULE_SEGMENT.test(segment)) && CANONICAL.test(version);
    return isLookup ? resource(path, { keeps: "always", contentType: "text/plain" }) : unknown;
  }

  const route: RegistryAddress["route"] = ({ method, segments }) => {
    if (method !== "GET" || segments.length > SEGMENTS_MAX) return unknown;
    if (segments[0] === "sumdb") return sums(segments);
    const latest = segments.at(-1) === "@latest";
    const name = segments.slice(0, latest ? -1 : -2);
    if (name.length === 0 || !name.every((segment) => MODULE_SEGMENT.test(segment))) return unknown;
    if (latest) return resource(segments, { keeps: "shortly", contentType: "application/json" });
    const file = segments.at(-1) ?? "";
    if (segments.at(-2) !== "@v") return unknown;
    if (file === "list") return resource(segments, { keeps: "shortly", contentType: "text/plain" });
    const [, version = "", kind = ""] = /^(.+)\.(info|mod|zip)$/.exec(file) ?? [];
    if (!VERSION.test(version)) return unknown;
    const keeps = CANONICAL.test(version) ? "always" : "shortly";
    return resource(segments, { keeps, contentType: types[kind] as string, ...(kind === "zip" ? { magic: zipMagic } : {}) });
  };

  return { name: "go", upstream, addresses: [publicAddress(goHost, route), ...ownAddresses(upstream, route)] };
}
