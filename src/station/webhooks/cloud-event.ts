import { createHmac } from "node:crypto";
import type { EntityKind } from "../../contract/api/streams.ts";

/** A longer event is sent only as a link, from which its receiver can fetch it. */
const BODY_BYTES_MAX = 256 * 1024;

export interface ToldEvent {
  /** The subject whose log contains the event. */
  of: { kind: EntityKind; id: string };
  seq: number;
  type: string;
  at: string;
  data: unknown;
}

/** The HTTP path segment for each kind of subject. */
const folders: Readonly<Record<EntityKind, string>> = {
  run: "runs",
  sandbox: "sandboxes",
  workflow: "workflows",
  spec: "specs",
  ship: "ships",
  merge: "merges",
  best: "bests",
};

/** Returns an event of a run, a sandbox or a durable job as a CloudEvent 1.0, in JSON. */
export function cloudEvent({ of: { kind, id }, seq, type, at, data }: ToldEvent): string {
  const source = `/v1/${folders[kind]}/${id}`;
  const attributes = {
    specversion: "1.0",
    id: `${id}.${seq}`,
    source,
    type: `caisson.${type}`,
    subject: id,
    time: at,
    sequence: String(seq),
    datacontenttype: "application/json",
  };
  const whole = JSON.stringify({ ...attributes, data });
  if (Buffer.byteLength(whole) <= BODY_BYTES_MAX) return whole;
  // The events of a spec are a stream without pages.
  const href = `${source}/events?fromSeq=${seq}${kind === "spec" ? "" : "&limit=1"}`;
  return JSON.stringify({ ...attributes, data: { tooLarge: true, href } });
}

/**
 * Returns the headers of the Standard Webhooks specification. The receiver checks the signature, and ignores ids that
 * it has seen.
 */
export function signedHeaders(message: { id: string; body: string; secret: string; nowMs: number }): Record<string, string> {
  const { id, body, secret } = message;
  const timestamp = String(Math.floor(message.nowMs / 1000));
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  return {
    "content-type": "application/cloudevents+json; charset=utf-8",
    "user-agent": "caisson-webhook",
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${signature}`,
  };
}

/** Returns whether one of the patterns (`run.ended`, `run.*`, `*`) matches an event type. */
export function isMeant(patterns: readonly string[], type: string): boolean {
  return patterns.some(
    (pattern) => pattern === "*" || pattern === type || (pattern.endsWith(".*") && type.startsWith(pattern.slice(0, -1))),
  );
}
