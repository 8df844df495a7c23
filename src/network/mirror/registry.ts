import type { RegistryName } from "../../contract/network.ts";
import type { Packages } from "./packages.ts";
import type { Resource } from "./resource.ts";
import { isCalledByItsName, portOf } from "./upstream-url.ts";

/** What a program inside asked for, of the part of the path that is below the address. */
export interface RegistryRequest {
  method: string;
  /** Decoded, none of them empty, `.` or `..`. */
  segments: readonly string[];
  /** Lower case. */
  accept: string;
  /** The address as the program called it; ends with a slash. */
  base: URL;
}

export type Routed =
  | { kind: "resource"; resource: Resource }
  /** Answered by the mirror itself. */
  | { kind: "answer"; status: number; contentType: string; body: string }
  /** Not of the shape of the registry's addresses, so nothing is asked of it. */
  | { kind: "unknown" };

/** Where programs inside ask for a registry, or for a part of it. */
export interface RegistryAddress {
  host: string;
  ports: readonly number[];
  /** Begins and ends with a slash. */
  path: string;
  /** Throws as `Packages.obtain`. */
  route(request: RegistryRequest): Routed | Promise<Routed>;
}

export interface Registry {
  readonly name: RegistryName;
  /** Where it reads from. */
  readonly upstream: URL;
  readonly addresses: readonly RegistryAddress[];
}

export interface RegistryOptions {
  /** Ends with a slash. */
  upstream: URL;
  packages: Packages;
}

type Route = RegistryAddress["route"];

/** Under a name that everybody knows, with and without TLS. */
export function publicAddress(host: string, route: Route): RegistryAddress {
  return { host, ports: [80, 443], path: "/", route };
}

/** Where it is read from, unless that name means something else inside. */
export function ownAddresses(upstream: URL, route: Route): RegistryAddress[] {
  if (!isCalledByItsName(upstream)) return [];
  return [{ host: upstream.hostname, ports: [portOf(upstream)], path: upstream.pathname, route }];
}

export const unknown: Routed = { kind: "unknown" };

export function notFound(text: string): Routed {
  return { kind: "answer", status: 404, contentType: "application/json", body: `${JSON.stringify({ error: text })}\n` };
}

/** All but `@` is encoded that may mean something else to some server, such as `+`. */
export function at(upstream: URL, segments: readonly string[]): URL {
  return new URL(segments.map((segment) => encodeURIComponent(segment).replaceAll("%40", "@")).join("/"), upstream);
}
