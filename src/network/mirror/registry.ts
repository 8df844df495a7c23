import type { RegistryName } from "../../contract/network.ts";
import type { Packages } from "./packages.ts";
import type { Resource } from "./resource.ts";

/** What a program inside asked for, of the part of the path that is the registry's. */
export interface RegistryRequest {
  method: string;
  /** Decoded, none of them empty, `.` or `..`. */
  segments: readonly string[];
  /** Lower case. */
  accept: string;
}

export type Routed =
  | { kind: "resource"; resource: Resource }
  /** Answered by the mirror itself. */
  | { kind: "answer"; status: number; contentType: string; body: string }
  /** Not of the shape of the registry's addresses, so nothing is asked of it. */
  | { kind: "unknown" };

export interface Registry {
  readonly name: RegistryName;
  /**
   * First segments of the paths that are this registry's. The segments of a request do not have it, unless
   * `keepsPrefix`.
   */
  readonly prefixes: readonly string[];
  readonly keepsPrefix?: boolean;
  /** Where it reads from. */
  readonly upstream: URL;
  /** Throws as `Packages.obtain`. */
  route(request: RegistryRequest): Routed | Promise<Routed>;
}

export interface RegistryOptions {
  /** Ends with a slash. */
  upstream: URL;
  /** Of the mirror, for addresses in pages. */
  origin: string;
  packages: Packages;
}

export const unknown: Routed = { kind: "unknown" };

export function notFound(text: string): Routed {
  return { kind: "answer", status: 404, contentType: "application/json", body: `${JSON.stringify({ error: text })}\n` };
}

/** All but `@` is encoded that may mean something else to some server, such as `+`. */
export function at(upstream: URL, segments: readonly string[]): URL {
  return new URL(segments.map((segment) => encodeURIComponent(segment).replaceAll("%40", "@")).join("/"), upstream);
}
