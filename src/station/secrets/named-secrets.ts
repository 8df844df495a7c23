import { CaissonError } from "../../contract/error.ts";
import type { SecretSpec } from "../../contract/network.ts";

type Secrets = Readonly<Record<string, SecretSpec>>;

/** The secrets of these names, of those that can be named. Throws `not_found`. */
export function namedSecrets(names: readonly string[], nameable: Secrets): Record<string, SecretSpec> {
  const missing = names.filter((name) => !Object.hasOwn(nameable, name));
  if (missing.length > 0) {
    throw new CaissonError("not_found", `neither the station nor its configuration has a secret ${missing.join(", ")}`, {
      hint: 'Keep it with `caisson secret set NAME@HOST`, or define it under "secrets" in config.json.',
    });
  }
  return Object.fromEntries(names.map((name) => [name, nameable[name] as SecretSpec]));
}
