import { createHash } from "node:crypto";
import { CaissonError } from "../../contract/error/error.ts";

/** The password of every Java trust store. It protects no secret, only the file's integrity. */
export const JAVA_KEY_STORE_PASSWORD = "changeit";

const MAGIC = 0xfeedfeed;
const FORMAT_VERSION = 2;
const TRUSTED_CERTIFICATE = 2;
const CERTIFICATES_MAX = 10_000;
/** Sun's own constant: the digest starts with the password and this text. */
const WHITENER = "Mighty Aphrodite";
const onePem = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Builds a Java trust store (JKS) from these certificates; each text may hold several. The same certificates give the
 * same bytes. Unreadable ones are skipped. Throws `invalid` for a text without a readable certificate, and `too_large`
 * above the limit.
 */
export function javaKeyStore(certificatesPem: readonly string[]): Buffer {
  const certificates = certificatesPem.flatMap(certificatesOf);
  if (certificates.length > CERTIFICATES_MAX) {
    throw new CaissonError("too_large", `too many certificates for a trust store: ${certificates.length}, at most ${CERTIFICATES_MAX}`);
  }
  const entries = certificates.flatMap((certificate, index) => [
    u32(TRUSTED_CERTIFICATE),
    text(`caisson-${index}`),
    // The creation time in milliseconds, which Java does not use.
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
  throw new CaissonError("invalid", "the text for the trust store contains no readable PEM certificate");
}

/**
 * Checks that the bytes are one DER sequence of exactly its stated length. Java rejects a whole store over one
 * unreadable certificate, but parsing each would cost as much as the rest of creating a sandbox.
 */
function isWhole(der: Buffer): boolean {
  return der.length > 4 && der[0] === 0x30 && der[1] === 0x82 && der.readUInt16BE(2) + 4 === der.length;
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Encodes ASCII text like Java's `writeUTF`. */
function text(value: string): Buffer {
  const bytes = Buffer.alloc(2 + value.length);
  bytes.writeUInt16BE(value.length);
  bytes.write(value, 2, "latin1");
  return bytes;
}
