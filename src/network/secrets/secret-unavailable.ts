import { CaissonError } from "../../contract/error.ts";

/**
 * A denial with the reason `secret_unavailable`. What is said is seen inside the sandbox: it names no place of the host
 * and nothing of the value.
 */
export function secretUnavailable(name: string, why: string): CaissonError {
  return new CaissonError("denied", `the secret ${name} cannot be used: ${why}`, {
    hint: "The request was not sent. Whoever started the sandbox can fix this.",
    details: { reason: "secret_unavailable", secret: name },
  });
}
