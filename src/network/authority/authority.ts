import { createPrivateKey, generateKeyPairSync, type KeyObject, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import { CaissonError } from "../../contract/error.ts";
import { authorityCertificate, leafCertificate, pemOf } from "./certificate.ts";

/** What is kept of an authority, with the sandbox. */
export interface StoredAuthority {
  keyPem: string;
  certificatePem: string;
}

/** The authority that one sandbox trusts, and no other does. */
export interface Authority {
  readonly certificatePem: string;
  /** For a TLS server that stands for this host. Throws `invalid` for what is neither a name nor an address. */
  contextFor(host: string): SecureContext;
  toStored(): StoredAuthority;
}

interface AuthorityOptions {
  now?: () => Date;
  contextsMax?: number;
}

const CONTEXTS_MAX = 256;
/** A leaf is made anew long before it ends, for sandboxes that live for years. */
const LEAF_KEPT_MS = 30 * 86_400_000;
const HOST_LENGTH_MAX = 253;
const dnsName = /^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/;

/**
 * A new authority, or the one that was stored. Throws `invalid` when what was stored is not an authority and its key.
 */
export function createAuthority(stored?: StoredAuthority, options: AuthorityOptions = {}): Authority {
  const { now = () => new Date(), contextsMax = CONTEXTS_MAX } = options;
  const { key, certificatePem } = stored === undefined ? fresh(now()) : opened(stored);
  const certificate = new X509Certificate(certificatePem);
  const issuer = {
    key,
    certificate: certificate.raw,
    validity: { from: new Date(certificate.validFrom), to: new Date(certificate.validTo) },
  };
  // One key for all hosts: making a key for each would cost time and hide nothing.
  const leaf = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const leafKeyPem = pemOfKey(leaf.privateKey);
  /** In the order of their last use. */
  const contexts = new Map<string, { context: SecureContext; madeAt: number }>();
  return {
    certificatePem,
    contextFor(asked) {
      const host = checkedHost(asked);
      const at = now();
      const known = contexts.get(host);
      contexts.delete(host);
      if (known !== undefined && at.getTime() - known.madeAt < LEAF_KEPT_MS) {
        contexts.set(host, known);
        return known.context;
      }
      const cert = pemOf(leafCertificate({ host, publicKey: leaf.publicKey, issuer, now: at }));
      const context = createSecureContext({ key: leafKeyPem, cert, minVersion: "TLSv1.2" });
      for (const oldest of contexts.keys()) {
        if (contexts.size < contextsMax) break;
        contexts.delete(oldest);
      }
      contexts.set(host, { context, madeAt: at.getTime() });
      return context;
    },
    toStored: () => ({ keyPem: pemOfKey(key), certificatePem }),
  };
}

function fresh(now: Date): { key: KeyObject; certificatePem: string } {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return { key: privateKey, certificatePem: pemOf(authorityCertificate(privateKey, now)) };
}

function opened({ keyPem, certificatePem }: StoredAuthority): { key: KeyObject; certificatePem: string } {
  let key: KeyObject;
  let certificate: X509Certificate;
  try {
    key = createPrivateKey(keyPem);
    certificate = new X509Certificate(certificatePem);
  } catch {
    // No cause: an error of the key's reader could quote the key.
    throw new CaissonError("invalid", "the sandbox's stored authority cannot be read");
  }
  if (key.asymmetricKeyType !== "ec" || !certificate.ca || !certificate.checkPrivateKey(key)) {
    throw new CaissonError("invalid", "the sandbox's stored authority and its key do not belong together");
  }
  return { key, certificatePem };
}

function pemOfKey(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}

function checkedHost(asked: string): string {
  const host = asked
    .toLowerCase()
    .replace(/\.$/, "")
    .replace(/^\[(.*)\]$/, "$1");
  const isAddress = isIP(host) !== 0 && !host.includes("%");
  if (isAddress || (host.length <= HOST_LENGTH_MAX && dnsName.test(host))) return host;
  throw new CaissonError("invalid", "a certificate is made for a host's name or address only", { details: { host: host.slice(0, 300) } });
}
