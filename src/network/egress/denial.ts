import type { NetworkPolicy } from "../../contract/network.ts";
import { type DenialReason, FailureReason, type NetworkVia } from "../../contract/network-event.ts";
import { pathOf } from "../address/request-path.ts";
import { parseTargetHost } from "../address/target-host.ts";
import type { AnswerVerdict } from "../http/relay-options.ts";
import { type Grant, indexOf, rulesFor, ruleText } from "./decide-egress.ts";

/** What somebody inside wanted. `host` is empty when it could not be made out. */
export interface Asked {
  host: string;
  port: number;
  via: NetworkVia;
  method: string | null;
  /** With or without a query, which is never shown. */
  path: string | null;
}

/**
 * Why it was refused or could not be had, for programs and, where there is more to say than the reason does, in words.
 */
export interface Refusal {
  reason: DenialReason | FailureReason;
  why?: string;
  /** No policy would allow it. */
  final?: boolean;
}

export interface Denial extends Refusal {
  asked: Asked;
  /** What a person and a model read. */
  text: string;
  /** The rules there are for that host. */
  rule: string;
}

const ALLOWED_SHOWN_MAX = 20;
const TEXT_MAX = 4000;
const HEADER_MAX = 300;
const PATH_SHOWN_MAX = 300;

const statuses: Partial<Record<Refusal["reason"], number>> = {
  unknown_host: 502,
  lookup_failed: 502,
  unavailable: 502,
  not_verified: 502,
  secret_unavailable: 502,
  bad_request: 400,
  too_many: 429,
};
/** Those that a change of the policy would lift. */
const policyReasons: ReadonlySet<Refusal["reason"]> = new Set([
  "no_network",
  "host_not_allowed",
  "port_not_allowed",
  "method_not_allowed",
  "path_not_allowed",
  "private_address",
]);

/**
 * Says what was asked, why not, what is allowed and how to ask for more. No header of the request is ever part of it.
 */
export function makeDenial(options: {
  asked: Asked;
  refusal: Refusal;
  policy: NetworkPolicy;
  howToAsk: (host: string, port: number, reason: DenialReason) => string;
}): Denial {
  const { asked, refusal, policy, howToAsk } = options;
  const lines = [`${titleOf(refusal)}: ${describeAsked(asked)}`, `Why: ${explain(refusal, asked)} (${refusal.reason})`];
  const { reason } = refusal;
  if (!isFailure(reason) && policyReasons.has(reason) && refusal.final !== true) {
    lines.push(`Allowed here: ${describeAllowed(policy)}`);
    if (asked.host !== "") lines.push(`To get it allowed: ${howToAsk(asked.host, asked.port, reason)}`);
  }
  return { ...refusal, asked, text: `${lines.join("\n").slice(0, TEXT_MAX)}\n`, rule: describeRules(policy, asked) };
}

/**
 * The denial as an answer to a request. The reason phrase says it, too: for a CONNECT many clients show nothing else.
 */
export function denialAnswer(denial: Denial): AnswerVerdict {
  const status = statuses[denial.reason] ?? 403;
  return {
    kind: "answer",
    status,
    reason: headerText(`${titleOf(denial)}: ${explain(denial, denial.asked)}`),
    headers: [
      [isFailure(denial.reason) ? "x-caisson-failed" : "x-caisson-denied", denial.reason],
      ["x-caisson-rule", headerText(denial.rule)],
    ],
    body: denial.text,
    // After a request that could not be understood, nothing on that connection can be.
    ...(denial.reason === "bad_request" || denial.reason === "too_many" ? { close: true } : {}),
  };
}

/** Whether it was allowed, and could not be had all the same. */
export function isFailure(reason: Refusal["reason"]): reason is FailureReason {
  return FailureReason.options.some((each) => each === reason);
}

export function isDenial(value: object): value is Denial {
  return "reason" in value && "asked" in value;
}

export function askedOf(grant: Grant, via: NetworkVia, request?: { method: string; target: string }): Asked {
  return { host: grant.host.text, port: grant.port, via, method: request?.method ?? null, path: request?.target ?? null };
}

/** The policy as a person reads it. */
export function describePolicy(policy: NetworkPolicy): string {
  if (policy.mode === "none") return "This sandbox has no network.";
  const title =
    policy.mode === "open" ? "This sandbox may reach every public address." : "This sandbox may reach only what is on its list.";
  const registries =
    policy.registries.length === 0 ? [] : [`Package registries, through the host's cache: ${policy.registries.join(", ")}`];
  return [
    title,
    ...policy.rules.map((rule) => `  ${ruleText(rule)}${rule.private ? " (also at private addresses)" : ""}`),
    ...registries,
  ].join("\n");
}

function titleOf({ reason }: Refusal): string {
  switch (reason) {
    case "unknown_host":
      return "Unknown host";
    case "lookup_failed":
      return "Name lookup failed";
    case "unavailable":
      return "Not available";
    default:
      return "Denied by Caisson";
  }
}

function describeAsked({ host, port, method, path }: Asked): string {
  const name = host.includes(":") ? `[${host}]` : host;
  const where = host === "" ? "" : `${name}:${port}`;
  if (method === null) return where === "" ? "a connection" : `a connection to ${where}`;
  return `${method} ${where}${path === null ? "" : pathOf(path).slice(0, PATH_SHOWN_MAX)}`;
}

/** In words, without saying who asked for what. */
export function explain({ reason, why }: Refusal, { host, port, method }: Asked): string {
  if (why !== undefined) return why;
  switch (reason) {
    case "no_network":
      return "this sandbox has no network";
    case "host_not_allowed":
      return `${host} is not on this sandbox's list of allowed hosts`;
    case "port_not_allowed":
      return `port ${port} of ${host} is not allowed`;
    case "method_not_allowed":
      return `${method ?? "this method"} is not allowed on ${host}`;
    case "path_not_allowed":
      return `this path of ${host} is not allowed`;
    case "private_address":
      return `${host} leads to an address that is private, the host's own or reserved`;
    case "unknown_host":
    case "name_not_found":
      return `there is no host named ${host}`;
    case "lookup_failed":
      return `the name ${host} could not be looked up`;
    case "unavailable":
      return `${host} cannot be reached`;
    case "name_mismatch":
      return `the name in the connection is not ${host}, which was asked for`;
    case "not_verified":
      return `the certificate of ${host} could not be verified`;
    case "secret_unavailable":
      return "a secret that this request needs is not available";
    case "too_many":
      return "there are too many connections";
    case "bad_request":
      return "the request cannot be understood";
  }
}

function describeAllowed(policy: NetworkPolicy): string {
  if (policy.mode === "none") return "nothing";
  const texts = policy.rules.map(ruleText);
  const shown = texts.slice(0, ALLOWED_SHOWN_MAX);
  if (policy.mode === "open") shown.unshift("every public address");
  if (texts.length > ALLOWED_SHOWN_MAX) shown.push(`${texts.length - ALLOWED_SHOWN_MAX} more`);
  if (policy.registries.length > 0) shown.push(`package registries (${policy.registries.join(", ")})`);
  return shown.length === 0 ? "nothing" : shown.join("; ");
}

function describeRules(policy: NetworkPolicy, asked: Asked): string {
  const host = parseTargetHost(asked.host);
  const rules = host === null || policy.mode === "none" ? [] : rulesFor(indexOf(policy), host);
  return rules.length === 0 ? `none (${policy.mode})` : rules.map((rule) => rule.text).join("; ");
}

/** A rule's path can hold anything. */
function headerText(text: string): string {
  return text.slice(0, HEADER_MAX).replaceAll(/[^\x20-\x7e]/g, "?");
}
