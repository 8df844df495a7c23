import type { NetworkPolicy, NetworkRule } from "./network.ts";
import { showRule } from "./network-text.ts";
import { withoutTrailingSlashes } from "./trailing-slashes.ts";

/** The first thing that a policy allows and another does not, as people write it; null when there is none. */
export function beyondPolicy(asked: NetworkPolicy, most: NetworkPolicy): string | null {
  if (asked.mode === "none") return null;
  if (asked.mode === "open" && most.mode !== "open") return "open";
  const registry = asked.registries.find((name) => most.mode === "none" || !most.registries.includes(name));
  if (registry !== undefined) return `registries:${registry}`;
  const rule = asked.rules.find((each) => !isCovered(each, most));
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

/** Prefixes are of whole segments. */
function coversPath(prefix: string, path: string): boolean {
  const bare = withoutTrailingSlashes(prefix);
  return path === bare || path === prefix || path.startsWith(`${bare}/`);
}
