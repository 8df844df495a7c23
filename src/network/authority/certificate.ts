import { createHash, createPublicKey, type KeyObject, randomBytes, sign } from "node:crypto";
import { isIPv4 } from "node:net";
import { der, derContent, derItems } from "./der.ts";

const DAY_MS = 86_400_000;
const AUTHORITY_NAME = "Caisson sandbox authority";
const AUTHORITY_YEARS = 10;
/** The CA/Browser Forum's limit. Some clients enforce it even on private authorities. */
const LEAF_DAYS = 397;
/** The maximum length of a common name in X.520. */
const COMMON_NAME_MAX = 64;
const SERIAL_BYTES = 16;

const oid = {
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  commonName: "2.5.4.3",
  subjectKeyIdentifier: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyIdentifier: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
};

export interface Validity {
  from: Date;
  to: Date;
}

/**
 * Creates a self-signed certificate that may sign others, one level deep. It has no name constraints, because the hosts
 * that a sandbox may reach change while it runs and this certificate cannot. It is safe because only its own sandbox
 * trusts it, and its key never leaves the host.
 */
export function authorityCertificate(key: KeyObject, now: Date): Buffer {
  const name = distinguishedName(AUTHORITY_NAME);
  const to = new Date(now);
  to.setUTCFullYear(to.getUTCFullYear() + AUTHORITY_YEARS);
  return signCertificate(key, {
    issuer: name,
    subject: name,
    publicKey: createPublicKey(key),
    // Valid from yesterday, because a sandbox's clock may be behind.
    validity: { from: new Date(now.getTime() - DAY_MS), to },
    extensions: [
      extension(oid.basicConstraints, "critical", der.sequence(der.boolean(true), der.integer(0))),
      // keyCertSign and cRLSign.
      extension(oid.keyUsage, "critical", der.bitString(Buffer.of(0b0000_0110), 1)),
      extension(oid.subjectKeyIdentifier, "plain", der.octetString(keyIdentifier(createPublicKey(key)))),
    ],
  });
}

export interface LeafRequest {
  /** A name in lower case, or an address. */
  host: string;
  publicKey: KeyObject;
  issuer: { key: KeyObject; certificate: Buffer; validity: Validity };
  now: Date;
}

/** Creates a server certificate for one host, valid only within its issuer's validity. */
export function leafCertificate({ host, publicKey, issuer, now }: LeafRequest): Buffer {
  const from = Math.max(now.getTime() - DAY_MS, issuer.validity.from.getTime());
  const to = Math.min(from + LEAF_DAYS * DAY_MS - 1000, issuer.validity.to.getTime());
  const address = addressBytes(host);
  return signCertificate(issuer.key, {
    issuer: subjectOf(issuer.certificate),
    // Clients only check the alternative name. This one is for people.
    subject: distinguishedName(host.length <= COMMON_NAME_MAX ? host : "Caisson sandbox"),
    publicKey,
    validity: { from: new Date(from), to: new Date(to) },
    extensions: [
      extension(oid.basicConstraints, "critical", der.sequence()),
      // digitalSignature.
      extension(oid.keyUsage, "critical", der.bitString(Buffer.of(0b1000_0000), 7)),
      extension(oid.extendedKeyUsage, "plain", der.sequence(der.objectId(oid.serverAuth))),
      extension(
        oid.subjectAltName,
        "plain",
        der.sequence(address === null ? der.implicit(2, Buffer.from(host, "latin1")) : der.implicit(7, address)),
      ),
      extension(oid.authorityKeyIdentifier, "plain", der.sequence(der.implicit(0, keyIdentifier(createPublicKey(issuer.key))))),
      extension(oid.subjectKeyIdentifier, "plain", der.octetString(keyIdentifier(publicKey))),
    ],
  });
}

export function pemOf(certificate: Buffer): string {
  const lines = certificate.toString("base64").replaceAll(/.{64}(?=.)/g, "$&\n");
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}

interface ToBeSigned {
  issuer: Buffer;
  subject: Buffer;
  publicKey: KeyObject;
  validity: Validity;
  extensions: readonly Buffer[];
}

function signCertificate(key: KeyObject, { issuer, subject, publicKey, validity, extensions }: ToBeSigned): Buffer {
  const algorithm = der.sequence(der.objectId(oid.ecdsaWithSha256));
  const body = der.sequence(
    der.explicit(0, der.integer(2)),
    serialNumber(),
    algorithm,
    issuer,
    der.sequence(der.time(validity.from), der.time(validity.to)),
    subject,
    publicKey.export({ type: "spki", format: "der" }),
    der.explicit(3, der.sequence(...extensions)),
  );
  return der.sequence(body, algorithm, der.bitString(sign("sha256", body, key)));
}

function serialNumber(): Buffer {
  const bytes = randomBytes(SERIAL_BYTES);
  // Always positive and of the same length.
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return der.integer(bytes);
}

function distinguishedName(commonName: string): Buffer {
  return der.sequence(der.set(der.sequence(der.objectId(oid.commonName), der.utf8String(commonName))));
}

function extension(id: string, criticality: "critical" | "plain", value: Buffer): Buffer {
  const critical = criticality === "critical" ? [der.boolean(true)] : [];
  return der.sequence(der.objectId(id), ...critical, der.octetString(value));
}

/**
 * RFC 5280, 4.2.1.2, method 1: SHA-1 of the key's bits. It only identifies the key, so SHA-1's weakness does not
 * matter.
 */
function keyIdentifier(publicKey: KeyObject): Buffer {
  const bits = derItems(publicKey.export({ type: "spki", format: "der" }))[1] as Buffer;
  return createHash("sha1").update(derContent(bits).subarray(1)).digest();
}

/** Returns the issuer's name byte for byte as in its own certificate. */
function subjectOf(certificate: Buffer): Buffer {
  const body = derItems(certificate)[0] as Buffer;
  return derItems(body)[5] as Buffer;
}

/** Returns the bytes of an address, or null for a name. */
function addressBytes(host: string): Buffer | null {
  if (isIPv4(host)) return Buffer.from(host.split(".").map(Number));
  if (!host.includes(":")) return null;
  const [head = "", tail] = new URL(`http://[${host}]/`).hostname.slice(1, -1).split("::");
  const groups = (text: string) => (text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16)));
  const first = groups(head);
  const last = groups(tail ?? "");
  const all = [...first, ...new Array<number>(8 - first.length - last.length).fill(0), ...last];
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]));
}
