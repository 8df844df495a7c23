import { z } from "zod";
import { concerns, defineEvent } from "../event/define-event.ts";
import { eventFamily } from "../event/event-family.ts";
import { SandboxId } from "../ids.ts";
import { Usage } from "../model/usage.ts";
import { GatewayWire, NetworkPolicy } from "./network.ts";

/**
 * How a program inside requested the connection: a plain request, CONNECT, SOCKS, the transparent proxy, an agent's
 * web_fetch, the package mirror or the model gateway.
 */
export const NetworkVia = z.enum(["http", "connect", "socks", "transparent", "fetch", "mirror", "gateway"]);
export type NetworkVia = z.infer<typeof NetworkVia>;

/** Why a connection or request was denied. */
export const DenialReason = z.enum([
  "no_network",
  "host_not_allowed",
  "port_not_allowed",
  "method_not_allowed",
  "path_not_allowed",
  "private_address",
  /** Only in logs older than `network.failed`. */
  "name_not_found",
  "name_mismatch",
  "bad_request",
  "too_many",
  "not_verified",
  "secret_unavailable",
]);
export type DenialReason = z.infer<typeof DenialReason>;

/**
 * Why an allowed request failed: the name does not exist or could not be looked up, or the host is unreachable or
 * answers with an error.
 */
export const FailureReason = z.enum(["unknown_host", "lookup_failed", "unavailable"]);
export type FailureReason = z.infer<typeof FailureReason>;

const where = { sandbox: SandboxId, host: z.string().max(300), port: z.int(), via: NetworkVia };

/**
 * `text` is the answer that the caller received. Identical requests within a few seconds are one event with a `count`.
 */
const inVain = {
  method: z.string().max(32).nullable(),
  path: z.string().max(2048).nullable(),
  text: z.string().max(4096),
  count: z.int().positive(),
};

/** A connection or request was denied. */
export const NetworkDenied = defineEvent("network.denied", 1, concerns("terminal", "console", "metrics"), {
  ...where,
  reason: DenialReason,
  ...inVain,
});
/** A connection or request was allowed but failed. */
export const NetworkFailed = defineEvent("network.failed", 1, concerns("terminal", "console"), {
  ...where,
  reason: FailureReason,
  ...inVain,
});
/**
 * An allowed connection ended. Bytes are counted on the host, from the sandbox's point of view: sent by it and received
 * by it.
 */
export const NetworkClosed = defineEvent("network.closed", 1, concerns("console"), {
  ...where,
  address: z.string().max(64),
  rule: z.string().max(300).nullable(),
  inspected: z.boolean(),
  /** Number of connections to the same place that this event covers; absent: one. */
  connections: z.int().positive().optional(),
  requests: z.int().nonnegative(),
  sentBytes: z.number(),
  receivedBytes: z.number(),
  durationMs: z.number(),
});
export const NetworkChanged = defineEvent("network.changed", 1, concerns("terminal", "console"), {
  sandbox: SandboxId,
  policy: NetworkPolicy,
  by: z.string().max(200),
});
export const SecretUsed = defineEvent("secret.used", 1, concerns("console"), {
  sandbox: SandboxId,
  secret: z.string(),
  host: z.string().max(300),
  method: z.string(),
  path: z.string().max(2048),
});
/** A placeholder was sent to a place where the value is not allowed, so it was not replaced. */
export const SecretWithheld = defineEvent("secret.withheld", 1, concerns("terminal", "console"), {
  sandbox: SandboxId,
  secret: z.string(),
  host: z.string().max(300),
  why: z.string().max(300),
});
export const SecretRevoked = defineEvent("secret.revoked", 1, concerns("terminal", "console"), {
  sandbox: SandboxId,
  secret: z.string(),
  by: z.string().max(200),
});
export const GatewayCalled = defineEvent("gateway.called", 1, concerns("facts", "terminal", "console", "guardian", "metrics"), {
  sandbox: SandboxId,
  wire: GatewayWire,
  model: z.string().max(200),
  path: z.string().max(300),
  status: z.int(),
  usage: Usage,
  /** Null if the model's price is unknown. */
  costUsd: z.number().nullable(),
  durationMs: z.number(),
  /** The beginning of the request and the answer, for later review. */
  asked: z.string().max(16_384),
  answered: z.string().max(16_384),
  /** Why the call was denied or failed; null on success. */
  error: z.string().max(2000).nullable(),
});
export const PortOpened = defineEvent("port.opened", 1, concerns("terminal", "console"), {
  sandbox: SandboxId,
  port: z.int(),
  address: z.string().max(64),
});
export const PortClosed = defineEvent("port.closed", 1, concerns("console"), { sandbox: SandboxId, port: z.int() });

const all = [
  NetworkDenied,
  NetworkFailed,
  NetworkClosed,
  NetworkChanged,
  SecretUsed,
  SecretWithheld,
  SecretRevoked,
  GatewayCalled,
  PortOpened,
  PortClosed,
] as const;
export const NetworkEvent = z.discriminatedUnion("type", all);
export const networkEvents = eventFamily(all);
export type NetworkEvent = z.infer<typeof NetworkEvent>;
/** An event with its number in its log, which does not change when earlier events are dropped. */
export type NumberedNetworkEvent = NetworkEvent & { seq: number };
