import type { AgentDefinition, SubAgentDefinition } from "../../contract/agent/agent.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { SecretConfig } from "../../contract/network/network.ts";
import type { CreateSandbox } from "../../contract/sandbox/sandbox-verbs.ts";
import { withSecretHosts } from "../../contract/secret/secret-hosts.ts";

type Secrets = Readonly<Record<string, SecretConfig>>;

/**
 * Adds the named secrets to a request's configuration, and allows their hosts. Throws `not_found`.
 */
export async function withSecrets(
  { secretNames = [], ...request }: CreateSandbox,
  { secretsOf, owner }: { secretsOf: (owner: string) => Promise<Readonly<Record<string, SecretConfig>>>; owner: string },
): Promise<CreateSandbox> {
  if (secretNames.length === 0) return request;
  const { spec: sandboxConfig } = request;
  const secrets = { ...namedSecrets(secretNames, await secretsOf(owner)), ...sandboxConfig.secrets };
  // A configuration that does not mention a network has the mode `none`.
  const network =
    withSecretHosts(sandboxConfig.network.mode === "none" ? undefined : sandboxConfig.network, secrets) ?? sandboxConfig.network;
  return { ...request, spec: { ...sandboxConfig, secrets, network } };
}

/** Returns the named secrets. Throws `not_found`. */
export function namedSecrets(names: readonly string[], nameable: Secrets): Record<string, SecretConfig> {
  const missing = names.filter((name) => !Object.hasOwn(nameable, name));
  if (missing.length > 0) {
    throw new CaissonError("not_found", `neither the station nor its configuration has a secret ${missing.join(", ")}`, {
      hint: 'Store it with `caisson secret set NAME@HOST`, or define it under "secrets" in config.json, with "owners" to share it with other owners.',
    });
  }
  return Object.fromEntries(names.map((name) => [name, nameable[name] as SecretConfig]));
}

/**
 * Adds the secrets that a complete definition and its sub-agents name but do not contain. Secrets in the request take
 * precedence. Throws `not_found`.
 */
export function withNamedSecrets(
  agent: AgentDefinition,
  { given: requestSecrets, nameable }: { given: Secrets; nameable: Secrets },
): AgentDefinition {
  const resolveNames = <One extends SubAgentDefinition>(one: One): One => {
    const { secretNames, secrets } = one.sandbox;
    const missing = secretNames.filter((name) => !Object.hasOwn(secrets, name) && !Object.hasOwn(requestSecrets, name));
    return { ...one, sandbox: { ...one.sandbox, secrets: { ...secrets, ...namedSecrets(missing, nameable) } } };
  };
  const subAgents = Object.fromEntries(Object.entries(agent.subAgents).map(([name, one]) => [name, resolveNames(one)]));
  return { ...resolveNames(agent), subAgents };
}
