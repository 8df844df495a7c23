import { CaissonError } from "../contract/error/error.ts";

/** The codes of Node and OpenSSL for an untrusted certificate, and what they mean. */
const problems: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: "it is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "its authority is unknown",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its authority is unknown",
  UNABLE_TO_GET_ISSUER_CERT: "its authority is unknown",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "its authority is unknown",
  CERT_UNTRUSTED: "its authority is unknown",
  INVALID_CA: "its authority may not sign certificates",
  CERT_HAS_EXPIRED: "it has expired",
  CERT_NOT_YET_VALID: "it is not valid yet",
  CERT_REVOKED: "it was revoked",
  CERT_SIGNATURE_FAILURE: "its signature is wrong",
  INVALID_PURPOSE: "it is not a server certificate",
  ERR_TLS_CERT_ALTNAME_INVALID: "it is for another host name",
  ERR_TLS_CERT_ALTNAME_FORMAT: "its names cannot be read",
};

/**
 * Returns null for any other failure. Nothing was sent to a station that could not prove its identity, so the token is
 * safe, and a retry would not help.
 */
export function certificateProblem(error: unknown, url: string): CaissonError | null {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  if (typeof code === "string" && Object.hasOwn(problems, code)) {
    return new CaissonError("unavailable", `the certificate of the station at ${url} is not trusted: ${problems[code]}`, {
      cause: error,
      hint: "Nothing was sent. If your own authority signed it, use caisson login URL --ca-file FILE (or CAISSON_CA_FILE).",
      details: { isBroken: false },
    });
  }
  if (typeof code === "string" && (code === "ERR_SSL_WRONG_VERSION_NUMBER" || code === "ERR_SSL_PACKET_LENGTH_TOO_LONG")) {
    return new CaissonError("unavailable", `the station at ${url} does not speak TLS`, {
      cause: error,
      hint: "Nothing was sent. Check the address: use http:// for a station without TLS, on its own machine or through a tunnel.",
      details: { isBroken: false },
    });
  }
  return cause === undefined ? null : certificateProblem(cause, url);
}
