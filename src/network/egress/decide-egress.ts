import type { NetworkPolicy, NetworkRule } from "../../contract/network.ts";
import type { DenialReason } from "../../contract/network-event.ts";
import type { AddressReach } from "../address/addresses.ts";
import { hasPathPrefix, unambiguousPath } from "../address/request-path.ts";
import { parseTargetHost, type TargetHost } from "../address/target-host.ts";

export interface IndexedRule {
  /** As events and denials name it. */
  text: string;
  ports: ReadonlySet<number>;
  methods: ReadonlySet<string> | null;
  paths: readonly string[] | null;
  private: boolean;
}

/**
 * What lets something through: the rules that fit, and whether the policy is open, which is a rule for every public
 * address.
 */
export interface Grant {
  host: TargetHost;
  port: number;
  rules: readonly IndexedRule[];
  open: boolean;
}

export type Decision = { allowed: true; grant: Grant } | { allowed: false; reason: DenialReason; why?: string };

interface Target {
  host: TargetHost | string;
  port: number;
}

/**
 * Whether a connection to a host may be made at all. What it resolves to is not known yet: `reaching` narrows the grant
 * to what may lead to such an address, and `mustInspect` then says whether the requests have to be seen.
 */
export function decideHost(policy: NetworkPolicy, { host, port }: Target): Decision {
  if (policy.mode === "none") return { allowed: false, reason: "no_network" };
  const parsed = typeof host === "string" ? parseTargetHost(host) : host;
  if (parsed === null) return { allowed: false, reason: "bad_request" };
  const open = policy.mode === "open";
  const ofHost = rulesFor(indexOf(policy), parsed);
  const rules = ofHost.filter((rule) => rule.ports.has(port));
  if (rules.length > 0 || open) return { allowed: true, grant: { host: parsed, port, rules, open } };
  return { allowed: false, reason: ofHost.length > 0 ? "port_not_allowed" : "host_not_allowed" };
}

/** Whether a request that we see may be made. `path` is a target in origin form, with or without a query. */
export function decideRequest(policy: NetworkPolicy, request: Target & { method: string; path: string }): Decision {
  const decision = decideHost(policy, request);
  return decision.allowed ? narrowToRequest(decision.grant, request) : decision;
}

/** Only the rules that are for this method and path. */
export function narrowToRequest(grant: Grant, { method, path }: { method: string; path: string }): Decision {
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
    why: "servers could read this path in more than one way, so that no rule for paths would hold",
  };
}

/** Only what may lead to such an address; null when nothing may. An open policy is open to public addresses alone. */
export function reaching(grant: Grant, reach: AddressReach): Grant | null {
  if (reach === "public") return grant;
  if (reach === "never") return null;
  const rules = grant.rules.filter((rule) => rule.private);
  return rules.length === 0 ? null : { ...grant, rules, open: false };
}

/** Whether each request must be seen: no rule lets the host through whatever is asked of it. */
export function mustInspect(grant: Grant): boolean {
  return !grant.open && grant.rules.every((rule) => rule.methods !== null || rule.paths !== null);
}

/** For events: the rule that let it through. The widest is named when several did. */
export function ruleOf(grant: Grant): string | null {
  const widest = grant.rules.find((rule) => rule.methods === null && rule.paths === null) ?? grant.rules[0];
  return widest?.text ?? (grant.open ? "open" : null);
}

/** The rules of a policy by host, so that a thousand of them cost as little as one. */
interface PolicyIndex {
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
