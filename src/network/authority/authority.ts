import type { SecureContext } from "node:tls";

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
