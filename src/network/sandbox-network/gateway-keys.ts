import { CaissonError } from "../../contract/error/error.ts";
import type { GatewayConfig, GatewayWire } from "../../contract/network/network.ts";
import type { GatewayUpstream } from "../gateway/gateway-options.ts";
import type { NetworkHost } from "../network-host.ts";

const keyVariables: Record<GatewayWire, string> = { anthropic: "ANTHROPIC_API_KEY", openai: "OPENAI_API_KEY" };

type KeyHost = Pick<NetworkHost, "variable" | "settings">;

/**
 * Throws `unauthenticated` for a gateway to a provider without a key, and names the variable: otherwise a program
 * inside would only notice with its first call.
 */
export function checkGatewayKeys(gatewayConfig: GatewayConfig | undefined, host: KeyHost): void {
  const missing = gatewayConfig?.wires.find((wire) => upstreamOf(wire, host).length === 0);
  if (missing === undefined) return;
  throw new CaissonError("unauthenticated", `the gateway to ${missing} has no key`, {
    hint: `Set ${keyVariables[missing]}, or network.gateway.${missing} in config.json for a server that needs no key.`,
  });
}

/**
 * Returns an empty list for a provider without a key. The gateway then reports the missing key. A self-hosted server
 * may need no key.
 */
export function upstreamOf(wire: GatewayWire, host: KeyHost): GatewayUpstream[] {
  const baseUrl = host.settings.gateway[wire];
  const key = () => host.variable(keyVariables[wire]) ?? "";
  if (baseUrl === undefined && key() === "") return [];
  return [{ ...(baseUrl === undefined ? {} : { baseUrl }), key: async () => key() }];
}
