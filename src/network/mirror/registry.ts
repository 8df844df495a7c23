import type { RegistryName } from "../../contract/network/network.ts";
import type { Packages } from "./packages.ts";
import type { Resource } from "./resource.ts";
import { isCalledByItsName, portOf } from "./upstream-url.ts";

/** A request of a program inside, with the part of the path below the registry's address. */
export interface RegistryRequest {
  method: string;
  /** The decoded segments. No segment is empty, `.` or `..`. */
  segments: readonly string[];
  /** In lower case. */
  accept: string;
  /** The address that the program requested; ends with a slash. */
  base: URL;
}

export type Routed =
  | { kind: "resource"; resource: Resource }
  /** Answered by the mirror itself. */
  | { kind: "answer"; status: number; contentType: string; body: string }
  /** The path does not have the registry's form, so the registry is not asked. */
  | { kind: "unknown" };

/** An address where programs inside request a registry, or a part of it. */
export interface RegistryAddress {
  host: string;
  ports: readonly number[];
  /** Starts and ends with a slash. */
  path: string;
  /** Throws like `Packages.obtain`. */
  route(request: RegistryRequest): Routed | Promise<Routed>;
}

export interface Registry {
  readonly name: RegistryName;
  /** The base URL that it reads from. */
  readonly upstream: URL;
  readonly addresses: readonly RegistryAddress[];
}

export interface RegistryOptions {
  /** Ends with a slash. */
  upstream: URL;
  packages: Packages;
}

type Route = RegistryAddress["route"];

/** Returns an address under a well-known name, with and without TLS. */
export function publicAddress(host: string, route: Route): RegistryAddress {
  return { host, ports: [80, 443], path: "/", route };
}

/** Returns the upstream's own address, unless that means something else inside. */
export function ownAddresses(upstream: URL, route: Route): RegistryAddress[] {
  if (!isCalledByItsName(upstream)) return [];
  return [{ host: upstream.hostname, ports: [portOf(upstream)], path: upstream.pathname, route }];
}

export const unknown: Routed = { kind: "unknown" };

export function notFound(text: string): Routed {
  return { kind: "answer", status: 404, contentType: "application/json", body: `${JSON.stringify({ error: text })}\n` };
}

/** Encodes everything except `@` that could mean something else to some server, such as `+`. */
export function at(upstream: URL, segments: readonly string[]): URL {
  return new URL(segments.map((segment) => encodeURIComponent(segment).replaceAll("%40", "@")).join("/"), upstream);
}
