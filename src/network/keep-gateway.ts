import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { GatewaySpec, GatewayWire } from "../contract/network.ts";
import type { InboundConnection } from "../sandbox/sandbox.ts";
import type { Emit } from "./egress/emit.ts";
import { createGateway } from "./gateway/gateway.ts";
import type { Gateway, GatewayOptions, GatewayUpstream } from "./gateway/gateway-options.ts";
import type { NetworkHost } from "./network-host.ts";

const Spent = z.object({ costUsd: z.number(), tokens: z.number() });
const SPENT_NAME = "gateway-spent.json";
const keyVariables: Record<GatewayWire, string> = { anthropic: "ANTHROPIC_API_KEY", openai: "OPENAI_API_KEY" };

/** The gateway of one sandbox, made when the first program asks for it. What it spends is kept in the sandbox's folder, so that a bound holds over processes. */
export function keepGateway(options: {
  folder: string;
  spec: () => GatewaySpec | null;
  host: NetworkHost;
  upstreamCa: readonly string[];
  redact: (text: string) => string;
  emit: Emit;
  budget: NonNullable<GatewayOptions["budget"]>;
  howToRaise: string;
}): Gateway {
  const { folder, host } = options;
  let gateway: Gateway | null = null;
  const make = (spec: GatewaySpec) =>
    createGateway({
      spec,
      upstreams: Object.fromEntries(spec.wires.map((wire) => [wire, upstreamOf(wire, host)])),
      spent: () => readSpent(folder),
      emit: (event) => {
        const { usage, costUsd } = event.data;
        const before = readSpent(folder);
        writeSpent(folder, { costUsd: before.costUsd + (costUsd ?? 0), tokens: before.tokens + usage.inputTokens + usage.outputTokens });
        options.emit(event);
      },
      prices: host.prices,
      redact: options.redact,
      budget: options.budget,
      howToRaise: options.howToRaise,
      upstreamCa: options.upstreamCa,
    });
  return {
    handle(connection: InboundConnection) {
      const spec = options.spec();
      if (spec === null) return void connection.stream.destroy();
      gateway ??= make(spec);
      gateway.handle(connection);
    },
    close: async () => gateway?.close(),
  };
}

function upstreamOf(wire: GatewayWire, host: NetworkHost): GatewayUpstream {
  const baseUrl = host.settings.gateway[wire];
  return { ...(baseUrl === undefined ? {} : { baseUrl }), key: async () => host.variable(keyVariables[wire]) ?? "" };
}

function readSpent(folder: string): z.infer<typeof Spent> {
  try {
    return Spent.parse(JSON.parse(readFileSync(join(folder, SPENT_NAME), "utf8")));
  } catch {
    return { costUsd: 0, tokens: 0 };
  }
}

function writeSpent(folder: string, spent: z.infer<typeof Spent>): void {
  const path = join(folder, SPENT_NAME);
  writeFileSync(`${path}.tmp`, JSON.stringify(spent), { mode: 0o600 });
  renameSync(`${path}.tmp`, path);
}
