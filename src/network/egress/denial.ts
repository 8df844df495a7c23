import type { NetworkPolicy } from "../../contract/network/network.ts";
import { type DenialReason, FailureReason, type NetworkVia } from "../../contract/network/network-event.ts";
import { pathOf } from "../address/request-path.ts";
import { parseTargetHost } from "../address/target-host.ts";
import type { AnswerVerdict } from "../http/relay-options.ts";
import { type Grant, indexOf, rulesFor, ruleText } from "./decide-egress.ts";

/** The request of a program inside. `host` is empty if it could not be determined. */
export interface Attempt {
  host: string;
  port: number;
  via: NetworkVia;
  method: string | null;
  /** With or without a query, which is never shown. */
  path: string | null;
}

/** Why a request was refused or failed: a code for programs, and a text if the code does not say everything. */
export interface Refusal {
  reason: DenialReason | FailureReason;
  why?: string;
  /** True if no policy could allow it. */
  final?: boolean;
}

export interface Denial extends Refusal {
  attempt: Attempt;
  /** The text for people and models. */
  text: string;
  /** The rules for that host. */
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
/** Reasons that a policy change can remove. */
const policyReasons: ReadonlySet<Refusal["reason"]> = new Set([
  "no_network",
  "host_not_allowed",
  "port_not_allowed",
  "method_not_allowed",
  "path_not_allowed",
  "private_address",
]);

/**
 * Builds the text that says what was requested, why it was denied, what is allowed and how to get access. It never
 * contains a header of the request.
 */
export function makeDenial(options: {
  attempt: Attempt;
  refusal: Refusal;
  policy: NetworkPolicy;
  howToAsk: (host: string, port: number, reason: DenialReason) => string;
}): Denial {
  const { attempt, refusal, policy, howToAsk } = options;
  const lines = [`${titleOf(refusal)}: ${describeAttempt(attempt)}`, `Why: ${explain(refusal, attempt)} (${refusal.reason})`];
  const { reason } = refusal;
  if (!isFailure(reason) && policyReasons.has(reason) && refusal.final !== true) {
    lines.push(`Allowed here: ${describeAllowed(policy)}`);
    if (attempt.host !== "") lines.push(`To get access: ${howToAsk(attempt.host, attempt.port, reason)}`);
  }
  return { ...refusal, attempt, text: `${lines.join("\n").slice(0, TEXT_MAX)}\n`, rule: describeRules(policy, attempt) };
}

/**
 * Returns the denial as an HTTP response. The reason phrase carries the message as well, because many clients show
 * nothing else for a CONNECT.
 */
export function denialAnswer(denial: Denial): AnswerVerdict {
  const status = statuses[denial.reason] ?? 403;
  return {
    kind: "answer",
    status,
    reason: headerText(`${titleOf(denial)}: ${explain(denial, denial.attempt)}`),
    headers: [
      [isFailure(denial.reason) ? "x-caisson-failed" : "x-caisson-denied", denial.reason],
      ["x-caisson-rule", headerText(denial.rule)],
    ],
    body: denial.text,
    // After a malformed request, the rest of the connection cannot be trusted.
    ...(denial.reason === "bad_request" || denial.reason === "too_many" ? { close: true } : {}),
  };
}

/** Checks whether the request was allowed but failed. */
export function isFailure(reason: Refusal["reason"]): reason is FailureReason {
  return FailureReason.options.some((each) => each === reason);
}

export function isDenial(value: object): value is Denial {
  return "reason" in value && "attempt" in value;
}

export function attemptOf(grant: Grant, via: NetworkVia, request?: { method: string; target: string }): Attempt {
  return { host: grant.host.text, port: grant.port, via, method: request?.method ?? null, path: request?.target ?? null };
}

/** Describes a policy for people. */
export function describePolicy(policy: NetworkPolicy): string {
  if (policy.mode === "none") return "This sandbox has no network.";
  const title =
    policy.mode === "open" ? "This sandbox may reach every public address." : "This sandbox may reach only the hosts on its list.";
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

function describeAttempt({ host, port, method, path }: Attempt): string {
  const name = host.includes(":") ? `[${host}]` : host;
  const where = host === "" ? "" : `${name}:${port}`;
  if (method === null) return where === "" ? "a connection" : `a connection to ${where}`;
  return `${method} ${where}${path === null ? "" : pathOf(path).slice(0, PATH_SHOWN_MAX)}`;
}

/** Explains a refusal in words, without repeating the request. */
export function explain({ reason, why }: Refusal, { host, port, method }: Attempt): string {
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
      return `the address of ${host} is private, reserved or the host's own`;
    case "unknown_host":
    case "name_not_found":
      return `there is no host named ${host}`;
    case "lookup_failed":
      return `the name ${host} could not be looked up`;
    case "unavailable":
      return `${host} cannot be reached`;
    case "name_mismatch":
      return `the connection names a different host than the requested ${host}`;
    case "not_verified":
      return `the certificate of ${host} could not be verified`;
    case "secret_unavailable":
      return "a secret that this request needs is not available";
    case "too_many":
      return "there are too many connections";
    case "bad_request":
      return "the request is malformed";
  }
}

function describeAllowed(policy: NetworkPolicy): string {
  if (policy.mode === "none") return "nothing";
  const texts = policy.rules.map(ruleText);
  const shownRules = texts.slice(0, ALLOWED_SHOWN_MAX);
  if (policy.mode === "open") shownRules.unshift("every public address");
  if (texts.length > ALLOWED_SHOWN_MAX) shownRules.push(`${texts.length - ALLOWED_SHOWN_MAX} more`);
  if (policy.registries.length > 0) shownRules.push(`package registries (${policy.registries.join(", ")})`);
  return shownRules.length === 0 ? "nothing" : shownRules.join("; ");
}

function describeRules(policy: NetworkPolicy, attempt: Attempt): string {
  const host = parseTargetHost(attempt.host);
  const rules = host === null || policy.mode === "none" ? [] : rulesFor(indexOf(policy), host);
  return rules.length === 0 ? `none (${policy.mode})` : rules.map((rule) => rule.text).join("; ");
}

/** A rule's path can contain any character. */
function headerText(text: string): string {
  return text.slice(0, HEADER_MAX).replaceAll(/[^\x20-\x7e]/g, "?");
}
