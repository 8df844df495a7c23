import type { NetworkPolicy } from "../../../../src/contract/network/network.ts";
import type { NetworkEvent } from "../../../../src/contract/network/network-event.ts";
import { bytes } from "../../parts/amounts.ts";
import { duration } from "../../parts/time.tsx";

export interface LogLine {
  key: number;
  at: string;
  word: string;
  tone: "good" | "bad" | "warn" | "idle" | "busy";
  what: string;
  about: string;
  /** The host and port to allow so that the request succeeds; null if a rule would not help. */
  target: { host: string; port: number } | null;
}

/** The reasons for a denial that a rule can change. */
const helped: ReadonlySet<string> = new Set(["host_not_allowed", "port_not_allowed", "no_network"]);

/** Describes a network event in one line. Returns null for events that are shown elsewhere. */
export function lineOf(event: NetworkEvent, key: number): LogLine | null {
  const line = (fields: Omit<LogLine, "key" | "at" | "target"> & Partial<LogLine>): LogLine => ({
    key,
    at: event.at,
    target: null,
    ...fields,
  });
  switch (event.type) {
    case "network.denied": {
      const { host, port, reason, method, path, count } = event.data;
      const target = helped.has(reason) ? { host, port } : null;
      const request = method === null ? `${host}:${port}` : `${method} ${host}:${port}${path ?? ""}`;
      return line({ word: "denied", tone: "bad", what: request, about: `${wordsOf(reason)}${times(count)}`, target });
    }
    case "network.failed": {
      const { host, port, reason, count } = event.data;
      return line({ word: "failed", tone: "warn", what: `${host}:${port}`, about: `${wordsOf(reason)}${times(count)}` });
    }
    case "network.closed": {
      const { host, port, sentBytes, receivedBytes, durationMs, connections = 1, requests } = event.data;
      const counted = requests > 0 ? `${requests} ${requests === 1 ? "request" : "requests"}, ` : "";
      const about = `${counted}↑ ${bytes(sentBytes)} ↓ ${bytes(receivedBytes)}, ${duration(durationMs)}${times(connections)}`;
      return line({ word: "connected", tone: "good", what: `${host}:${port}`, about });
    }
    case "network.changed":
      return line({ word: "policy", tone: "busy", what: `changed to ${event.data.policy.mode}`, about: `by ${event.data.by}` });
    case "secret.used":
      return line({
        word: "secret",
        tone: "busy",
        what: `${event.data.secret} to ${event.data.host}`,
        about: `${event.data.method} ${event.data.path}`,
      });
    case "secret.withheld":
      return line({ word: "withheld", tone: "warn", what: `${event.data.secret} from ${event.data.host}`, about: event.data.why });
    case "secret.revoked":
      return line({ word: "revoked", tone: "idle", what: event.data.secret, about: `by ${event.data.by}` });
    case "gateway.called": {
      const cost = event.data.costUsd === null ? "" : `, $${event.data.costUsd.toFixed(4)}`;
      return line({
        word: "model",
        tone: event.data.error === null ? "good" : "bad",
        what: event.data.model,
        about: event.data.error ?? `${duration(event.data.durationMs)}${cost}`,
      });
    }
    case "port.opened":
    case "port.closed":
      return line({
        word: "port",
        tone: "idle",
        what: String(event.data.port),
        about: event.type === "port.opened" ? "listening" : "no longer listening",
      });
    default:
      event satisfies never;
      return null;
  }
}

const wordsOf = (reason: string) => reason.replaceAll("_", " ");
const times = (count: number) => (count > 1 ? `, ${count} times` : "");

/** Returns whether one click can allow the connection, because no rule allows it yet. */
export function canAllow({ host, port }: { host: string; port: number }, policy: NetworkPolicy): boolean {
  if (policy.mode === "none") return true;
  return !policy.rules.some((rule) => rule.host === host && rule.ports.includes(port));
}
