import type { NetworkPolicy } from "../network/network.ts";
import { showRule } from "../network/network-text.ts";

/**
 * Returns a policy that allows everything that either one allows. Transparency does not change: it is set when a
 * sandbox is created.
 */
export function allowMore(before: NetworkPolicy, more: NetworkPolicy): NetworkPolicy {
  if (more.mode === "none") return before;
  if (before.mode === "none") return more;
  const known = new Set(before.rules.map(showRule));
  return {
    ...before,
    mode: more.mode === "open" ? "open" : before.mode,
    rules: [...before.rules, ...more.rules.filter((rule) => !known.has(showRule(rule)))],
    registries: [...new Set([...before.registries, ...more.registries])],
  };
}

/** Returns the policy without the hosts and registries that the other one names. */
export function denySome(before: NetworkPolicy, less: NetworkPolicy): NetworkPolicy {
  if (before.mode === "none" || less.mode === "none") return before;
  const hosts = new Set(less.rules.map(({ host }) => host));
  return {
    ...before,
    rules: before.rules.filter(({ host }) => !hosts.has(host)),
    registries: before.registries.filter((registry) => !less.registries.includes(registry)),
  };
}
