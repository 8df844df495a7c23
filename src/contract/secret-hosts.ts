import { allowMore } from "./change-policy.ts";
import { CaissonError } from "./error.ts";
import { type NetworkPolicy, NetworkRule, type SecretSpec } from "./network.ts";

/**
 * The policy with which the hosts of secrets can be reached: a secret is of no use otherwise. Throws `invalid` where
 * the network is none by name.
 */
export function withSecretHosts(
  policy: NetworkPolicy | undefined,
  secrets: Readonly<Record<string, SecretSpec>>,
): NetworkPolicy | undefined {
  const rules = Object.values(secrets).flatMap(({ hosts, ports }) => hosts.map((host) => NetworkRule.parse({ host, ports })));
  if (rules.length === 0) return policy;
  if (policy?.mode === "none") throw noHostReached();
  if (policy?.mode === "open") return policy;
  // A rule for the host that was given stays as narrow as it is.
  const missing = rules.filter((rule) => !policy?.rules.some(({ host }) => host === rule.host));
  return allowMore(policy ?? { mode: "none" }, { mode: "allow", rules: missing, registries: [], transparent: false });
}

export function noHostReached(): CaissonError {
  return new CaissonError("invalid", "a secret is for a host, and the network is none", {
    hint: "Leave --network none out: the secret's hosts can then be reached, and nothing else.",
  });
}
