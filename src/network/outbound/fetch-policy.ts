import { createSecureContext, type SecureContext } from "node:tls";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { parseTargetHost } from "../address/target-host.ts";
import { resolveByHost } from "../egress/resolve.ts";
import { trustedCertificates } from "./trusted-certificates.ts";

/** What the station may fetch for an owner, and which certificates it trusts. */
export interface FetchPolicy {
  /** Whether this owner may reach a host at a private address or on this machine. */
  allowsPrivate(host: string, owner: string): boolean;
  resolve(name: string): Promise<string[]>;
  /** The configured certificates as PEM, in addition to the system's. */
  extraCa: readonly string[];
  secureContext(): SecureContext;
}

/**
 * `privateHosts` are the hosts in private networks that every owner may fetch from. The machine's user may fetch from
 * every private host.
 */
export function createFetchPolicy(options: {
  privateHosts: readonly string[];
  extraCa?: readonly string[];
  resolve?: (name: string) => Promise<string[]>;
}): FetchPolicy {
  const { extraCa = [], resolve = resolveByHost } = options;
  const known = new Set(options.privateHosts.flatMap((host) => parseTargetHost(host)?.text ?? []));
  let context: SecureContext | null = null;
  return {
    allowsPrivate: (host, owner) => owner === LOCAL_OWNER || known.has(parseTargetHost(host)?.text ?? ""),
    resolve,
    extraCa,
    secureContext: () => (context ??= createSecureContext({ ca: trustedCertificates(extraCa), minVersion: "TLSv1.2" })),
  };
}
