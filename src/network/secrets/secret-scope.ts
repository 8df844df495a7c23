import type { SecretSpec } from "../../contract/network.ts";
import { hasPathPrefix, unambiguousPath } from "../address/request-path.ts";
import { parseTargetHost } from "../address/target-host.ts";
import type { RequestHead } from "../http/head.ts";
import { methodOverrides, pathOverrides } from "../http/headers.ts";
import type { SecretDestination } from "./secret-book.ts";

/** Where the value of one secret may go. */
export interface SecretScope {
  fits(host: string, port: number): boolean;
  /** Null when the value may go with this request, else why not, for people. */
  refusal(head: RequestHead, to: SecretDestination): string | null;
  /** The only header for it, in lower case; null: any. */
  header: string | null;
}

export function createSecretScope(spec: SecretSpec): SecretScope {
  const fitsHost = hostTest(spec.hosts);
  const ports = new Set(spec.ports);
  const methods = spec.methods === undefined ? null : new Set(spec.methods);
  const { paths } = spec;
  return {
    header: spec.header ?? null,
    fits: (host, port) => ports.has(port) && fitsHost(host),
    refusal(head, { host, port, tls }) {
      if (!fitsHost(host)) return "it is not for this host";
      if (!ports.has(port)) return `it is not for port ${port}`;
      if (!tls) return "it goes over TLS only";
      if (methods !== null) {
        if (!methods.has(head.method)) return `it is not for ${head.method.slice(0, 32)}`;
        if (head.headers.some(({ lower }) => methodOverrides.has(lower))) return "a header changes the request's method";
      }
      if (paths !== undefined) {
        const path = unambiguousPath(head.target);
        if (path === null) return "the path can be read in more than one way";
        if (!paths.some((prefix) => hasPathPrefix(path, prefix))) return "it is not for this path";
        if (head.headers.some(({ lower }) => pathOverrides.has(lower))) return "a header changes the request's path";
      }
      return null;
    },
  };
}

/** A pattern that is no host fits nothing. */
function hostTest(patterns: readonly string[]): (host: string) => boolean {
  if (patterns.includes("*")) return () => true;
  const canonical = (pattern: string) => parseTargetHost(pattern)?.text;
  const exact = new Set(patterns.map(canonical));
  const below = patterns.filter((pattern) => pattern.startsWith("*.")).map((pattern) => `.${canonical(pattern.slice(2))}`);
  return (asked) => {
    const host = parseTargetHost(asked);
    if (host === null) return false;
    return exact.has(host.text) || (host.kind === "name" && below.some((end) => host.text.endsWith(end)));
  };
}
