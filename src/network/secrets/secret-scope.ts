import type { SecretConfig } from "../../contract/network/network.ts";
import { hasPathPrefix, unambiguousPath } from "../address/request-path.ts";
import { parseTargetHost } from "../address/target-host.ts";
import type { RequestHead } from "../http/head.ts";
import { methodOverrides, pathOverrides } from "../http/headers.ts";
import type { SecretDestination } from "./secret-book.ts";

/** The destinations that the value of one secret may be sent to. */
export interface SecretScope {
  fits(host: string, port: number): boolean;
  /** Returns null if the value may be sent with this request, otherwise the reason, for people. */
  refusal(head: RequestHead, to: SecretDestination): string | null;
  /** The only header that the value may be sent in, in lower case, or null for any. */
  header: string | null;
}

export function createSecretScope(config: SecretConfig): SecretScope {
  const fitsHost = hostTest(config.hosts);
  const ports = new Set(config.ports);
  const methods = config.methods === undefined ? null : new Set(config.methods);
  const { paths } = config;
  return {
    header: config.header ?? null,
    fits: (host, port) => ports.has(port) && fitsHost(host),
    refusal(head, { host, port, tls }) {
      if (!fitsHost(host)) return "its scope does not include this host";
      if (!ports.has(port)) return `its scope does not include port ${port}`;
      if (!tls) return "it is only sent over TLS";
      if (methods !== null) {
        if (!methods.has(head.method)) return `its scope does not include ${head.method.slice(0, 32)}`;
        if (head.headers.some(({ lower }) => methodOverrides.has(lower))) return "a header changes the request's method";
      }
      if (paths !== undefined) {
        const path = unambiguousPath(head.target);
        if (path === null) return "the path can be read in more than one way";
        if (!paths.some((prefix) => hasPathPrefix(path, prefix))) return "its scope does not include this path";
        if (head.headers.some(({ lower }) => pathOverrides.has(lower))) return "a header changes the request's path";
      }
      return null;
    },
  };
}

/** A pattern that is not a host matches nothing. */
function hostTest(patterns: readonly string[]): (host: string) => boolean {
  if (patterns.includes("*")) return () => true;
  const canonical = (pattern: string) => parseTargetHost(pattern)?.text;
  const exact = new Set(patterns.map(canonical));
  const below = patterns.filter((pattern) => pattern.startsWith("*.")).map((pattern) => `.${canonical(pattern.slice(2))}`);
  return (hostname) => {
    const host = parseTargetHost(hostname);
    if (host === null) return false;
    return exact.has(host.text) || (host.kind === "name" && below.some((end) => host.text.endsWith(end)));
  };
}
