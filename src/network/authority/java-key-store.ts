import { createHash } from "node:crypto";
import { CaissonError } from "../../contract/error.ts";

/** What every Java trust store has. It keeps nothing secret: it only shows that the file is whole. */
export const JAVA_KEY_STORE_PASSWORD = "changeit";

const MAGIC = 0xfeedfeed;
const FORMAT_VERSION = 2;
const TRUSTED_CERTIFICATE = 2;
const CERTIFICATES_MAX = 10_000;
/** Sun's own words: the digest begins with password and whitener. */
const WHITENER = "Mighty Aphrodite";
const onePem = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * A trust store as Java reads it (JKS), of these certificates; each text may hold many. The same certificates give the
 * same bytes. Unreadable ones are left out. Throws `invalid` for a text without a readable one, `too_large` past the
 * limit.
 */
export function javaKeyStore(certificatesPem: readonly string[]): Buffer {
  const certificates = certificatesPem.flatMap(certificatesOf);
  if (certificates.length > CERTIFICATES_MAX) {
    throw new CaissonError("too_large", `a trust store of ${certificates.length} certificates; at most ${CERTIFICATES_MAX}`);
  }
  const entries = certificates.flatMap((certificate, index) => [
    u32(TRUSTED_CERTIFICATE),
    text(`caisson-${index}`),
    // When it was added, in milliseconds. Nobody asks.
    Buffer.alloc(8),
    text("X.509"),
    u32(certificate.length),
    certificate,
  ]);
  const body = Buffer.concat([u32(MAGIC), u32(FORMAT_VERSION), u32(certificates.length), ...entries]);
  const password = Buffer.from(JAVA_KEY_STORE_PASSWORD, "utf16le").swap16();
  return Buffer.concat([body, createHash("sha1").update(password).update(WHITENER).update(body).digest()]);
}

function certificatesOf(pem: string): Buffer[] {
  const readable = (pem.match(onePem) ?? []).map((one) => Buffer.from(one.replaceAll(/-----[^-]+-----/g, ""), "base64")).filter(isWhole);
  if (readable.length > 0) return readable;
  throw new CaissonError("invalid", "a trust store is made of certificates in PEM form; there is none in this text");
}

/**
 * A sequence of exactly its own length (DER). Java refuses a whole store for one certificate that it cannot read; to
 * parse each would cost as much as the rest of making a sandbox.
 */
function isWhole(der: Buffer): boolean {
  return der.length > 4 && der[0] === 0x30 && der[1] === 0x82 && der.readUInt16BE(2) + 4 === der.length;
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Java's writeUTF, for ASCII. */
function text(value: string): Buffer {
  const bytes = Buffer.alloc(2 + value.length);
  bytes.writeUInt16BE(value.length);
  bytes.write(value, 2, "latin1");
  return bytes;
}
