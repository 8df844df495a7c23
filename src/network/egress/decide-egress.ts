import type { NetworkPolicy, NetworkRule } from "../../contract/network/network.ts";
import type { DenialReason } from "../../contract/network/network-event.ts";
import type { AddressReach } from "../address/addresses.ts";
import { hasPathPrefix, unambiguousPath } from "../address/request-path.ts";
import { parseTargetHost, type TargetHost } from "../address/target-host.ts";

export interface IndexedRule {
  /** The rule as shown in events and denials. */
  text: string;
  ports: ReadonlySet<number>;
  methods: ReadonlySet<string> | null;
  paths: readonly string[] | null;
  private: boolean;
}

/**
 * The permission to connect: the matching rules, and whether the policy is open. An open policy acts like a rule for
 * all public addresses.
 */
export interface Grant {
  host: TargetHost;
  port: number;
  rules: readonly IndexedRule[];
  open: boolean;
}

export type EgressDecision = { allowed: true; grant: Grant } | { allowed: false; reason: DenialReason; why?: string };

interface Target {
  host: TargetHost | string;
  port: number;
}

/**
 * Decides whether a connection to a host may be made, before its name is resolved. Afterwards `reaching` narrows the
 * grant to the rules that allow the resolved address, and `mustInspect` says whether we must see the requests.
 */
export function decideHost(policy: NetworkPolicy, { host, port }: Target): EgressDecision {
  if (policy.mode === "none") return { allowed: false, reason: "no_network" };
  const parsed = typeof host === "string" ? parseTargetHost(host) : host;
  if (parsed === null) return { allowed: false, reason: "bad_request" };
  const open = policy.mode === "open";
  const ofHost = rulesFor(indexOf(policy), parsed);
  const rules = ofHost.filter((rule) => rule.ports.has(port));
  if (rules.length > 0 || open) return { allowed: true, grant: { host: parsed, port, rules, open } };
  return { allowed: false, reason: ofHost.length > 0 ? "port_not_allowed" : "host_not_allowed" };
}

/** Decides on a request that we can see. `path` is a target in origin form, with or without a query. */
export function decideRequest(policy: NetworkPolicy, request: Target & { method: string; path: string }): EgressDecision {
  const decision = decideHost(policy, request);
  return decision.allowed ? narrowToRequest(decision.grant, request) : decision;
}

/** Keeps only the rules that allow this method and path. */
export function narrowToRequest(grant: Grant, { method, path }: { method: string; path: string }): EgressDecision {
  const ofMethod = grant.rules.filter((rule) => rule.methods === null || rule.methods.has(method));
  let plain: string | null | undefined;
  const rules = ofMethod.filter((rule) => {
    if (rule.paths === null) return true;
    if (plain === undefined) plain = unambiguousPath(path);
    return plain !== null && rule.paths.some((prefix) => hasPathPrefix(plain as string, prefix));
  });
  if (rules.length > 0 || grant.open) return { allowed: true, grant: { ...grant, rules } };
  if (ofMethod.length === 0) return { allowed: false, reason: "method_not_allowed" };
  if (plain !== null) return { allowed: false, reason: "path_not_allowed" };
  return {
    allowed: false,
    reason: "path_not_allowed",
    why: "servers could read this path in different ways, so path rules cannot be enforced on it",
  };
}

/**
 * Keeps only the rules that allow addresses of this reach. Returns null if no rule does. An open policy covers only
 * public addresses.
 */
export function reaching(grant: Grant, reach: AddressReach): Grant | null {
  if (reach === "public") return grant;
  if (reach === "never") return null;
  const rules = grant.rules.filter((rule) => rule.private);
  return rules.length === 0 ? null : { ...grant, rules, open: false };
}

/** Checks whether we must see each request, because no rule allows the host unconditionally. */
export function mustInspect(grant: Grant): boolean {
  return !grant.open && grant.rules.every((rule) => rule.methods !== null || rule.paths !== null);
}

/** Returns the rule that granted access, for events. If several rules did, returns the widest. */
export function ruleOf(grant: Grant): string | null {
  const widest = grant.rules.find((rule) => rule.methods === null && rule.paths === null) ?? grant.rules[0];
  return widest?.text ?? (grant.open ? "open" : null);
}

/** The rules of a policy, indexed by host, so that a thousand rules cost as little as one. */
interface PolicyIndex {
  exact: ReadonlyMap<string, readonly IndexedRule[]>;
  /** Keyed by the part after `*.`. */
  below: ReadonlyMap<string, readonly IndexedRule[]>;
  every: readonly IndexedRule[];
}

const RULE_TEXT_MAX = 300;
const indexes = new WeakMap<NetworkPolicy, PolicyIndex>();

/** Returns the index of a policy, which is built once for each policy object. */
export function indexOf(policy: NetworkPolicy): PolicyIndex {
  const known = indexes.get(policy);
  if (known !== undefined) return known;
  const index = makeIndex(policy.mode === "none" ? [] : policy.rules);
  indexes.set(policy, index);
  return index;
}

/** Returns the rules for a host, on any port. */
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

/** Formats a rule for people, such as `GET,HEAD example.com:443 /api`. */
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

/** Skips a rule whose host is not valid, because it can never match. */
function add(map: Map<string, IndexedRule[]>, text: string, rule: IndexedRule): void {
  const host = parseTargetHost(text);
  if (host === null) return;
  const rules = map.get(host.text);
  if (rules === undefined) map.set(host.text, [rule]);
  else rules.push(rule);
}
