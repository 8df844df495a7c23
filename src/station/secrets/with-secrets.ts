import type { SecretSpec } from "../../contract/network.ts";
import type { CreateSandbox } from "../../contract/sandbox-verbs.ts";
import { withSecretHosts } from "../../contract/secret-hosts.ts";

/**
 * The same with the secrets that it names in its spec; their hosts can be reached. Throws `not_found`. Most name none,
 * and pay for nothing.
 */
export async function withSecrets(
  { secretNames = [], ...request }: CreateSandbox,
  { secretsOf, owner }: { secretsOf: (owner: string) => Promise<Readonly<Record<string, SecretSpec>>>; owner: string },
): Promise<CreateSandbox> {
  if (secretNames.length === 0) return request;
  const { namedSecrets } = await import("./named-secrets.ts");
  const { spec } = request;
  const secrets = { ...namedSecrets(secretNames, await secretsOf(owner)), ...spec.secrets };
  // None is what a spec has that says nothing of a network.
  const network = withSecretHosts(spec.network.mode === "none" ? undefined : spec.network, secrets) ?? spec.network;
  return { ...request, spec: { ...spec, secrets, network } };
}
