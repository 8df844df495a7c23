import { CaissonError } from "../error/error.ts";
import { allowMore } from "../network/change-policy.ts";
import { type NetworkPolicy, NetworkRule, type SecretConfig } from "../network/network.ts";

/**
 * Returns the policy extended by the hosts of the secrets, since a secret is useless if its host is unreachable. Throws
 * `invalid` for the network `none`.
 */
export function withSecretHosts(
  policy: NetworkPolicy | undefined,
  secrets: Readonly<Record<string, SecretConfig>>,
): NetworkPolicy | undefined {
  const rules = Object.values(secrets).flatMap(({ hosts, ports }) => hosts.map((host) => NetworkRule.parse({ host, ports })));
  if (rules.length === 0) return policy;
  if (policy?.mode === "none") throw noHostReached();
  if (policy?.mode === "open") return policy;
  // If a rule for the host already exists, it stays as narrow as it is.
  const missing = rules.filter((rule) => !policy?.rules.some(({ host }) => host === rule.host));
  return allowMore(policy ?? { mode: "none" }, { mode: "allow", rules: missing, registries: [], transparent: false });
}

export function noHostReached(): CaissonError {
  return new CaissonError("invalid", "a secret needs a host, but the network is `none`", {
    hint: "Omit --network none; then only the secret's hosts are reachable.",
  });
}
