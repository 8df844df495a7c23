import { CaissonError } from "../../contract/error.ts";
import type { GatewaySpec, GatewayWire } from "../../contract/network.ts";
import type { GatewayUpstream } from "../gateway/gateway-options.ts";
import type { NetworkHost } from "../network-host.ts";

const keyVariables: Record<GatewayWire, string> = { anthropic: "ANTHROPIC_API_KEY", openai: "OPENAI_API_KEY" };

type KeyHost = Pick<NetworkHost, "variable" | "settings">;

/**
 * Throws `unauthenticated` for a gateway to a provider without a key, naming the variable: a program inside would only
 * learn of it with its first call.
 */
export function checkGatewayKeys(spec: GatewaySpec | undefined, host: KeyHost): void {
  const missing = spec?.wires.find((wire) => upstreamOf(wire, host).length === 0);
  if (missing === undefined) return;
  throw new CaissonError("unauthenticated", `the gateway to ${missing} has no key`, {
    hint: `Set ${keyVariables[missing]}, or network.gateway.${missing} in config.json for a server that needs none.`,
  });
}

/** None for a provider whose key is not there: the gateway then says so. A server of one's own may need none. */
export function upstreamOf(wire: GatewayWire, host: KeyHost): GatewayUpstream[] {
  const baseUrl = host.settings.gateway[wire];
  const key = () => host.variable(keyVariables[wire]) ?? "";
  if (baseUrl === undefined && key() === "") return [];
  return [{ ...(baseUrl === undefined ? {} : { baseUrl }), key: async () => key() }];
}
