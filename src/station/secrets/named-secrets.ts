import type { AgentDefinition, SubAgentDefinition } from "../../contract/agent.ts";
import { CaissonError } from "../../contract/error.ts";
import type { SecretSpec } from "../../contract/network.ts";

type Secrets = Readonly<Record<string, SecretSpec>>;

/** The secrets of these names, of those that can be named. Throws `not_found`. */
export function namedSecrets(names: readonly string[], nameable: Secrets): Record<string, SecretSpec> {
  const missing = names.filter((name) => !Object.hasOwn(nameable, name));
  if (missing.length > 0) {
    throw new CaissonError("not_found", `neither the station nor its configuration has a secret ${missing.join(", ")}`, {
      hint: 'Keep it with `caisson secret set NAME@HOST`, or define it under "secrets" in config.json, for other owners with "owners".',
    });
  }
  return Object.fromEntries(names.map((name) => [name, nameable[name] as SecretSpec]));
}

/**
 * A whole definition with the secrets that it, or one it hands work to, names and does not have. Those of the request
 * win. Throws `not_found`.
 */
export function withNamedSecrets(agent: AgentDefinition, { given, nameable }: { given: Secrets; nameable: Secrets }): AgentDefinition {
  const resolved = <One extends SubAgentDefinition>(one: One): One => {
    const { secretNames, secrets } = one.sandbox;
    const missing = secretNames.filter((name) => !Object.hasOwn(secrets, name) && !Object.hasOwn(given, name));
    return { ...one, sandbox: { ...one.sandbox, secrets: { ...secrets, ...namedSecrets(missing, nameable) } } };
  };
  const subAgents = Object.fromEntries(Object.entries(agent.subAgents).map(([name, one]) => [name, resolved(one)]));
  return { ...resolved(agent), subAgents };
}
