import { getCACertificates, rootCertificates } from "node:tls";

/** Node's own, the system's, and those that were given: a company's authority is often known to the system alone. */
export function trustedCertificates(more: readonly string[]): string[] {
  return [...new Set([...rootCertificates, ...getCACertificates("system"), ...getCACertificates("extra"), ...more])];
}
