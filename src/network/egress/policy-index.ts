import type { NetworkPolicy, NetworkRule } from "../../contract/network.ts";
import { parseTargetHost, type TargetHost } from "../address/target-host.ts";

export interface IndexedRule {
  /** As events and denials name it. */
  text: string;
  ports: ReadonlySet<number>;
  methods: ReadonlySet<string> | null;
  paths: readonly string[] | null;
  private: boolean;
}

/** The rules of a policy by host, so that a thousand of them cost as little as one. */
export interface PolicyIndex {
  exact: ReadonlyMap<string, readonly IndexedRule[]>;
  /** By what follows `*.`. */
  below: ReadonlyMap<string, readonly IndexedRule[]>;
  every: readonly IndexedRule[];
}

const RULE_TEXT_MAX = 300;
const indexes = new WeakMap<NetworkPolicy, PolicyIndex>();

/** Made once for each policy object. */
export function indexOf(policy: NetworkPolicy): PolicyIndex {
  const known = indexes.get(policy);
  if (known !== undefined) return known;
  const index = makeIndex(policy.mode === "none" ? [] : policy.rules);
  indexes.set(policy, index);
  return index;
}

/** The rules for a host, whatever their port. */
export function rulesFor(index: PolicyIndex, host: TargetHost): readonly IndexedRule[] {
  const found = [...(index.exact.get(host.text) ?? [])];
  if (host.kind === "name" && index.below.size > 0) {
    for (let dot = host.text.indexOf("."); dot !== -1; dot = host.text.indexOf(".", dot + 1)) {
      const rules = index.below.get(host.text.slice(dot + 1));
      if (rules !== undefined) found.push(...rules);
    }
  }
  found.push(...index.every);
  return found;
}

/** `GET,HEAD example.com:443 /api`, for people. */
export function ruleText(rule: NetworkRule): string {
  const host = rule.host.includes(":") ? `[${rule.host}]` : rule.host;
  const usual = rule.ports.length === 2 && rule.ports.includes(80) && rule.ports.includes(443);
  const parts = [rule.methods?.join(",") ?? "", usual ? host : `${host}:${rule.ports.join(",")}`, rule.paths?.join(",") ?? ""];
  const text = parts.filter((part) => part !== "").join(" ");
  return text.length > RULE_TEXT_MAX ? `${text.slice(0, RULE_TEXT_MAX - 1)}…` : text;
}

function makeIndex(rules: readonly NetworkRule[]): PolicyIndex {
  const exact = new Map<string, IndexedRule[]>();
  const below = new Map<string, IndexedRule[]>();
  const every: IndexedRule[] = [];
  for (const rule of rules) {
    const indexed: IndexedRule = {
      text: ruleText(rule),
      ports: new Set(rule.ports),
      methods: rule.methods === undefined ? null : new Set(rule.methods),
      paths: rule.paths ?? null,
      private: rule.private,
    };
    if (rule.host === "*") every.push(indexed);
    else if (rule.host.startsWith("*.")) add(below, rule.host.slice(2), indexed);
    else add(exact, rule.host, indexed);
  }
  return { exact, below, every };
}

/** A rule for something that is no host never fits anything. */
function add(map: Map<string, IndexedRule[]>, text: string, rule: IndexedRule): void {
  const host = parseTargetHost(text);
  if (host === null) return;
  const rules = map.get(host.text);
  if (rules === undefined) map.set(host.text, [rule]);
  else rules.push(rule);
}
