import { createSecureContext, type SecureContext } from "node:tls";
import { LOCAL_OWNER } from "../../contract/owner.ts";
import { parseTargetHost } from "../address/target-host.ts";
import { resolveByHost } from "../egress/resolve.ts";
import { trustedCertificates } from "./trusted-certificates.ts";

/** What the station may fetch for an owner, and by which certificates it knows servers. */
export interface FetchPolicy {
  /** Whether a host at a private address, or this machine, is reached for this owner. */
  allowsPrivate(host: string, owner: string): boolean;
  resolve(name: string): Promise<string[]>;
  /** The configuration's certificates as PEM, besides the system's. */
  extraCa: readonly string[];
  secureContext(): SecureContext;
}

/** `privateHosts`: hosts in private networks that every owner may fetch from. The machine's user reaches them all. */
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
