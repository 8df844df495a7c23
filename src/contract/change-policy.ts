import type { NetworkPolicy } from "./network.ts";
import { showRule } from "./network-text.ts";

/**
 * Everything that held before, and what the other one allows. Whether programs are carried transparently is decided
 * when a sandbox is made.
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

/** What held before without the hosts and registries that the other one names. */
export function denySome(before: NetworkPolicy, less: NetworkPolicy): NetworkPolicy {
  if (before.mode === "none" || less.mode === "none") return before;
  const hosts = new Set(less.rules.map(({ host }) => host));
  return {
    ...before,
    rules: before.rules.filter(({ host }) => !hosts.has(host)),
    registries: before.registries.filter((registry) => !less.registries.includes(registry)),
  };
}
