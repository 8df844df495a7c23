import { z } from "zod";
import { SandboxId } from "../ids.ts";
import { GatewayConfig, HostPattern, NetworkPolicy, Port } from "./network.ts";

/**
 * Arguments and answers of the station's verbs for networks. A network is identified by the id of its sandbox, or of
 * the run in it.
 */

export const NetworkView = z.object({
  sandbox: SandboxId,
  policy: NetworkPolicy,
  secrets: z.array(z.object({ name: z.string(), hosts: z.array(HostPattern), revoked: z.boolean() })),
  gateway: GatewayConfig.nullable(),
  /** The process that serves its connections; null if nothing serves them. */
  servedBy: z.int().nullable(),
});
export type NetworkView = z.infer<typeof NetworkView>;

/** `allow` adds the policy, `deny` subtracts it, `set` replaces the current one. */
export const NetworkChange = z.strictObject({
  how: z.enum(["allow", "deny", "set"]),
  policy: NetworkPolicy,
  by: z.string().default("user"),
});
export type NetworkChange = Omit<z.infer<typeof NetworkChange>, "by"> & { by?: string };

export const RevokeSecret = z.strictObject({ secret: z.string().min(1), by: z.string().default("user") });
export type RevokeSecret = z.input<typeof RevokeSecret>;

export const OpenPreview = z.strictObject({
  /** The port inside. */
  port: Port,
  /** The port on this machine; absent: any free one. */
  listenPort: Port.optional(),
});
export type OpenPreview = z.infer<typeof OpenPreview>;

/** The address of a sandbox port, for anyone with the URL. */
export const PreviewView = z.object({
  sandbox: SandboxId,
  port: Port,
  url: z.string(),
  /** The URL without its token, for a program that sends the token itself. */
  plainUrl: z.string(),
  token: z.string(),
  listenPort: z.int(),
});
export type PreviewView = z.infer<typeof PreviewView>;

export const PreviewId = z.string().regex(/^pv_[a-z2-7]{12}$/, "a preview id looks like pv_k3v7q2m5x4ab");
export type PreviewId = z.infer<typeof PreviewId>;

/** A preview that the station keeps open. */
export const KeptPreview = PreviewView.extend({ id: PreviewId, openedAt: z.iso.datetime() });
export type KeptPreview = z.infer<typeof KeptPreview>;

export const ForwardPort = z.strictObject({
  /** The port inside. */
  port: Port,
  /** The port on this machine; absent: any free one. */
  listenPort: Port.optional(),
  /** Anyone who can reach this address can reach the port inside. */
  listenHost: z.string().min(1).default("127.0.0.1"),
});
export type ForwardPort = z.input<typeof ForwardPort>;

export const ForwardView = z.object({ sandbox: SandboxId, port: Port, listenHost: z.string(), listenPort: z.int() });
export type ForwardView = z.infer<typeof ForwardView>;

export const ListeningPort = z.object({ port: Port, address: z.string() });
export type ListeningPort = z.infer<typeof ListeningPort>;
