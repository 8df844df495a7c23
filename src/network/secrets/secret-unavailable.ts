import { CaissonError } from "../../contract/error/error.ts";

/**
 * Creates a denial with the reason `secret_unavailable`. Its message is visible inside the sandbox, so it contains no
 * path on the host and no part of the value.
 */
export function secretUnavailable(name: string, why: string): CaissonError {
  return new CaissonError("denied", `the secret ${name} cannot be used: ${why}`, {
    hint: "The request was not sent. The user who started the sandbox can fix this.",
    details: { reason: "secret_unavailable", secret: name },
  });
}
