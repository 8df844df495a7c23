import { CaissonError } from "../contract/error.ts";

/** What Node and OpenSSL call a certificate that does not prove whose it is, and what that means. */
const problems: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: "it signed itself",
  SELF_SIGNED_CERT_IN_CHAIN: "its authority is not a known one",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its authority is not a known one",
  UNABLE_TO_GET_ISSUER_CERT: "its authority is not a known one",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "its authority is not a known one",
  CERT_UNTRUSTED: "its authority is not a known one",
  INVALID_CA: "its authority may not sign certificates",
  CERT_HAS_EXPIRED: "it has expired",
  CERT_NOT_YET_VALID: "it is not valid yet",
  CERT_REVOKED: "it was revoked",
  CERT_SIGNATURE_FAILURE: "its signature is wrong",
  INVALID_PURPOSE: "it is not for a server",
  ERR_TLS_CERT_ALTNAME_INVALID: "it is for another name",
  ERR_TLS_CERT_ALTNAME_FORMAT: "its names cannot be read",
};

/**
 * Null for any other failure. Nothing was sent to a station that could not prove who it is, so asking again would not
 * help, and its token is safe.
 */
export function certificateProblem(error: unknown, url: string): CaissonError | null {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  if (typeof code === "string" && Object.hasOwn(problems, code)) {
    return new CaissonError("unavailable", `the certificate of the station at ${url} is not trusted: ${problems[code]}`, {
      cause: error,
      hint: "Nothing was sent. If its own authority signed it, name that one: caisson login URL --ca-file FILE (or CAISSON_CA_FILE).",
      details: { isBroken: false },
    });
  }
  if (typeof code === "string" && (code === "ERR_SSL_WRONG_VERSION_NUMBER" || code === "ERR_SSL_PACKET_LENGTH_TOO_LONG")) {
    return new CaissonError("unavailable", `the station at ${url} does not speak TLS`, {
      cause: error,
      hint: "Nothing was sent. Check the address: a station without TLS is reached by http:// on its own machine or through a tunnel.",
      details: { isBroken: false },
    });
  }
  return cause === undefined ? null : certificateProblem(cause, url);
}
