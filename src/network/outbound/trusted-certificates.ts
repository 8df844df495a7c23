import { getCACertificates, rootCertificates } from "node:tls";

/**
 * Returns Node's own certificates, the system's and the given ones. A company's authority is often known only to the
 * system.
 */
export function trustedCertificates(more: readonly string[]): string[] {
  return [...new Set([...rootCertificates, ...getCACertificates("system"), ...getCACertificates("extra"), ...more])];
}
