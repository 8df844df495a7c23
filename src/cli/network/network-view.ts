import type { NetworkEvent } from "../../contract/network/network-event.ts";
import { showPolicy } from "../../contract/network/network-text.ts";
import { showBytes, showDuration } from "../../lib/quantity.ts";
import { unreachable } from "../../lib/unreachable.ts";

/** Formats a network event as one line. */
export function networkLine(event: NetworkEvent): string {
  switch (event.type) {
    case "network.denied":
    case "network.failed": {
      const { host, port, reason, count, method, path } = event.data;
      const request = method === null ? "" : ` ${method} ${path ?? ""}`;
      return `${event.type === "network.denied" ? "denied" : "failed"}   ${host}:${port}${request} (${reason.replaceAll("_", " ")})${count > 1 ? ` ×${count}` : ""}`;
    }
    case "network.closed": {
      const { host, port, sentBytes, receivedBytes, requests, durationMs, inspected, connections = 1 } = event.data;
      const counts = `${connections > 1 ? `, ${connections} connections` : ""}${requests > 0 ? `, ${requests} ${requests === 1 ? "request" : "requests"}` : ""}`;
      return `reached  ${host}:${port} ${showBytes(sentBytes)} out, ${showBytes(receivedBytes)} in${counts}, ${showDuration(durationMs)}${inspected ? ", inspected" : ""}`;
    }
    case "network.changed":
      return `changed  ${showPolicy(event.data.policy)} (by ${event.data.by})`;
    case "secret.used":
      return `secret   ${event.data.secret} used for ${event.data.method} ${event.data.host}${event.data.path}`;
    case "secret.withheld":
      return `secret   ${event.data.secret} withheld from ${event.data.host}: ${event.data.why}`;
    case "secret.revoked":
      return `secret   ${event.data.secret} revoked (by ${event.data.by})`;
    case "gateway.called": {
      const { model, usage, costUsd, error } = event.data;
      return `model    ${model} ${usage.inputTokens} tokens in, ${usage.outputTokens} out${costUsd === null ? "" : `, $${costUsd.toFixed(4)}`}${error === null ? "" : `: ${error}`}`;
    }
    case "port.opened":
      return `port     ${event.data.port} listens`;
    case "port.closed":
      return `port     ${event.data.port} no longer listens`;
    default:
      return unreachable(event);
  }
}
