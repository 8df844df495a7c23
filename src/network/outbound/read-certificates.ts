import { readFileSync } from "node:fs";
import { CaissonError } from "../../contract/error/error.ts";

/** Reads a certificate file that `network.caFiles` names. Throws `invalid`. */
export function readCertificates(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new CaissonError("invalid", `the certificates in ${file} cannot be read`, {
      cause,
      hint: "Check network.caFiles in the configuration.",
    });
  }
}
