import { createPrivateKey, generateKeyPairSync, type KeyObject, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import { CaissonError } from "../../contract/error/error.ts";
import { authorityCertificate, leafCertificate, pemOf } from "./certificate.ts";

/** The stored form of an authority, kept with its sandbox. */
export interface StoredAuthority {
  keyPem: string;
  certificatePem: string;
}

/** The certificate authority of one sandbox, which no other sandbox trusts. */
export interface Authority {
  readonly certificatePem: string;
  /**
   * Returns the TLS context for a server that impersonates this host. Throws `invalid` if the host is neither a name
   * nor an address.
   */
  contextFor(host: string): SecureContext;
  toStored(): StoredAuthority;
}

interface AuthorityOptions {
  now?: () => Date;
  contextsMax?: number;
}

const CONTEXTS_MAX = 256;
/** A leaf is renewed long before it expires, because some sandboxes live for years. */
const LEAF_KEPT_MS = 30 * 86_400_000;
const HOST_LENGTH_MAX = 253;
const dnsName = /^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/;

/** Creates a new authority, or opens the stored one. Throws `invalid` if `stored` is not an authority with its key. */
export function createAuthority(stored?: StoredAuthority, options: AuthorityOptions = {}): Authority {
  const { now = () => new Date(), contextsMax = CONTEXTS_MAX } = options;
  const { key, certificatePem } = stored === undefined ? fresh(now()) : openAuthority(stored);
  const certificate = new X509Certificate(certificatePem);
  const issuer = {
    key,
    certificate: certificate.raw,
    validity: { from: new Date(certificate.validFrom), to: new Date(certificate.validTo) },
  };
  // One key for all hosts: a key for each would cost time and protect nothing.
  const leaf = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const leafKeyPem = pemOfKey(leaf.privateKey);
  /** Ordered by last use. */
  const contexts = new Map<string, { context: SecureContext; madeAt: number }>();
  return {
    certificatePem,
    contextFor(rawHost) {
      const host = checkedHost(rawHost);
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

function openAuthority({ keyPem, certificatePem }: StoredAuthority): { key: KeyObject; certificatePem: string } {
  let key: KeyObject;
  let certificate: X509Certificate;
  try {
    key = createPrivateKey(keyPem);
    certificate = new X509Certificate(certificatePem);
  } catch {
    // Without a cause, because the key parser's error could quote the key.
    throw new CaissonError("invalid", "the sandbox's stored authority cannot be read");
  }
  if (key.asymmetricKeyType !== "ec" || !certificate.ca || !certificate.checkPrivateKey(key)) {
    throw new CaissonError("invalid", "the sandbox's stored authority and its key do not match");
  }
  return { key, certificatePem };
}

function pemOfKey(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}

function checkedHost(rawHost: string): string {
  const host = rawHost
    .toLowerCase()
    .replace(/\.$/, "")
    .replace(/^\[(.*)\]$/, "$1");
  const isAddress = isIP(host) !== 0 && !host.includes("%");
  if (isAddress || (host.length <= HOST_LENGTH_MAX && dnsName.test(host))) return host;
  throw new CaissonError("invalid", "cannot create a certificate for a host that is neither a name nor an address", {
    details: { host: host.slice(0, 300) },
  });
}
