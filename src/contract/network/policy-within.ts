import { withoutTrailingSlashes } from "../trailing-slashes.ts";
import type { NetworkPolicy, NetworkRule } from "./network.ts";
import { showRule } from "./network-text.ts";

/**
 * Returns the first thing that a policy allows and `most` does not, in text form, or null if it allows nothing more.
 */
export function beyondPolicy(policy: NetworkPolicy, most: NetworkPolicy): string | null {
  if (policy.mode === "none") return null;
  if (policy.mode === "open" && most.mode !== "open") return "open";
  const registry = policy.registries.find((name) => most.mode === "none" || !most.registries.includes(name));
  if (registry !== undefined) return `registries:${registry}`;
  const rule = policy.rules.find((each) => !isCovered(each, most));
  return rule === undefined ? null : showRule(rule);
}

function isCovered(rule: NetworkRule, most: NetworkPolicy): boolean {
  if (most.mode === "none") return false;
  if (most.mode === "open" && !rule.private) return true;
  return most.rules.some((wider) => covers(wider, rule));
}

function covers(wider: NetworkRule, rule: NetworkRule): boolean {
  return (
    coversHost(wider.host, rule.host) &&
    rule.ports.every((port) => wider.ports.includes(port)) &&
    (wider.methods === undefined || (rule.methods ?? [""]).every((method) => wider.methods?.includes(method))) &&
    (wider.paths === undefined || (rule.paths ?? [""]).every((path) => wider.paths?.some((prefix) => coversPath(prefix, path)))) &&
    (wider.private || !rule.private)
  );
}

function coversHost(wider: string, host: string): boolean {
  if (wider === "*" || wider === host) return true;
  return wider.startsWith("*.") && host !== "*" && host.replace(/^\*\./, ".").endsWith(wider.slice(1)) && host !== wider.slice(2);
}

/** Prefixes match complete segments. */
function coversPath(prefix: string, path: string): boolean {
  const bare = withoutTrailingSlashes(prefix);
  return path === bare || path === prefix || path.startsWith(`${bare}/`);
}
