import { z } from "zod";
import { defineEvent } from "./define-event.ts";
import { eventFamily } from "./event-family.ts";
import { SandboxId } from "./ids.ts";
import { GatewayWire, NetworkPolicy } from "./network.ts";
import { Usage } from "./usage.ts";

/**
 * How something inside asked for a connection: a plain request, a CONNECT, SOCKS, without knowing of a proxy, or as an
 * agent's web_fetch.
 */
export const NetworkVia = z.enum(["http", "connect", "socks", "transparent", "fetch", "mirror", "gateway"]);
export type NetworkVia = z.infer<typeof NetworkVia>;

/** Why a connection or a request was not let through. */
export const DenialReason = z.enum([
  "no_network",
  "host_not_allowed",
  "port_not_allowed",
  "method_not_allowed",
  "path_not_allowed",
  "private_address",
  /** Of logs from before `network.failed`. */
  "name_not_found",
  "name_mismatch",
  "bad_request",
  "too_many",
  "not_verified",
  "secret_unavailable",
]);
export type DenialReason = z.infer<typeof DenialReason>;

/**
 * Why something that is allowed could not be had: its name is not known, could not be looked up, or the host cannot be
 * reached or answers with an error of its own.
 */
export const FailureReason = z.enum(["unknown_host", "lookup_failed", "unavailable"]);
export type FailureReason = z.infer<typeof FailureReason>;

const where = { sandbox: SandboxId, host: z.string().max(300), port: z.int(), via: NetworkVia };

/** `text` is what was said to the one who asked. `count` of the same within a few seconds are one event. */
const inVain = {
  method: z.string().max(32).nullable(),
  path: z.string().max(2048).nullable(),
  text: z.string().max(4096),
  count: z.int().positive(),
};

/** A connection or request was refused. */
export const NetworkDenied = defineEvent("network.denied", 1, { ...where, reason: DenialReason, ...inVain });
/** It was allowed, and nobody there answered. */
export const NetworkFailed = defineEvent("network.failed", 1, { ...where, reason: FailureReason, ...inVain });
/**
 * A connection that was let through has ended. Bytes are counted on the host, from the sandbox's side: sent by it and
 * received by it.
 */
export const NetworkClosed = defineEvent("network.closed", 1, {
  ...where,
  address: z.string().max(64),
  rule: z.string().max(300).nullable(),
  inspected: z.boolean(),
  /** Of several to the same place that are told in one; absent: one. */
  connections: z.int().positive().optional(),
  requests: z.int().nonnegative(),
  sentBytes: z.number(),
  receivedBytes: z.number(),
  durationMs: z.number(),
});
export const NetworkChanged = defineEvent("network.changed", 1, { sandbox: SandboxId, policy: NetworkPolicy, by: z.string().max(200) });
export const SecretUsed = defineEvent("secret.used", 1, {
  sandbox: SandboxId,
  secret: z.string(),
  host: z.string().max(300),
  method: z.string(),
  path: z.string().max(2048),
});
/** A placeholder was sent where the value may not go; it went as the placeholder that it is. */
export const SecretWithheld = defineEvent("secret.withheld", 1, {
  sandbox: SandboxId,
  secret: z.string(),
  host: z.string().max(300),
  why: z.string().max(300),
});
export const SecretRevoked = defineEvent("secret.revoked", 1, { sandbox: SandboxId, secret: z.string(), by: z.string().max(200) });
export const GatewayCalled = defineEvent("gateway.called", 1, {
  sandbox: SandboxId,
  wire: GatewayWire,
  model: z.string().max(200),
  path: z.string().max(300),
  status: z.int(),
  usage: Usage,
  /** Null where the model's price is not known. */
  costUsd: z.number().nullable(),
  durationMs: z.number(),
  /** The beginning of what was asked and answered, for reading later. */
  asked: z.string().max(16_384),
  answered: z.string().max(16_384),
  /** Why it was refused or failed; null when it went well. */
  error: z.string().max(2000).nullable(),
});
export const PortOpened = defineEvent("port.opened", 1, { sandbox: SandboxId, port: z.int(), address: z.string().max(64) });
export const PortClosed = defineEvent("port.closed", 1, { sandbox: SandboxId, port: z.int() });

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
/** With its place in the log it was read from, which stays when earlier ones are dropped. */
export type NumberedNetworkEvent = NetworkEvent & { seq: number };
