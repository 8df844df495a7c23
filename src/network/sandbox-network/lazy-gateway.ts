import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { GatewayConfig } from "../../contract/network/network.ts";
import type { InboundConnection } from "../../sandbox/sandbox.ts";
import type { Emit } from "../egress/egress-options.ts";
import { createGateway } from "../gateway/gateway.ts";
import type { Gateway, GatewayOptions } from "../gateway/gateway-options.ts";
import type { NetworkHost } from "../network-host.ts";
import { upstreamOf } from "./gateway-keys.ts";

const Spent = z.object({ costUsd: z.number(), tokens: z.number() });
const SPENT_NAME = "gateway-spent.json";

/**
 * The gateway of one sandbox, created on first use. Its spending is stored in the sandbox's folder, so that a limit
 * holds across processes.
 */
export function createLazyGateway(options: {
  folder: string;
  config: () => GatewayConfig | null;
  host: NetworkHost;
  upstreamCa: readonly string[];
  redact: (text: string) => string;
  emit: Emit;
  budget: NonNullable<GatewayOptions["budget"]>;
  hostedTools: () => boolean;
  howToRaise: string;
}): Gateway {
  const { folder, host } = options;
  let gateway: { of: GatewayConfig; serves: Gateway } | null = null;
  const make = (config: GatewayConfig) =>
    createGateway({
      config,
      upstreams: Object.fromEntries(config.wires.flatMap((wire) => upstreamOf(wire, host).map((upstream) => [wire, upstream]))),
      // Provider-side features would bypass the rules. An open network has no rules.
      hostedTools: options.hostedTools,
      readSpent: () => readSpent(folder),
      emit: (event) => {
        // Restores the total if the event cannot be recorded, so that a repeated event is not counted twice.
        const { usage, costUsd } = event.data;
        const before = readSpent(folder);
        writeSpent(folder, { costUsd: before.costUsd + (costUsd ?? 0), tokens: before.tokens + usage.inputTokens + usage.outputTokens });
        try {
          options.emit(event);
        } catch (error) {
          writeSpent(folder, before);
          throw error;
        }
      },
      prices: host.prices,
      redact: options.redact,
      budget: options.budget,
      howToRaise: options.howToRaise,
      upstreamCa: options.upstreamCa,
    });
  return {
    handle(connection: InboundConnection) {
      const config = options.config();
      if (config === null) return void connection.stream.destroy();
      if (gateway?.of !== config) {
        // Also ends the calls that are still in progress in the old gateway.
        void gateway?.serves.close();
        gateway = { of: config, serves: make(config) };
      }
      gateway.serves.handle(connection);
    },
    close: async () => gateway?.serves.close(),
  };
}

/** Throws if the file cannot be read: without a total, no call may pass the limit. */
function readSpent(folder: string): z.infer<typeof Spent> {
  const path = join(folder, SPENT_NAME);
  if (!existsSync(path)) return { costUsd: 0, tokens: 0 };
  return Spent.parse(JSON.parse(readFileSync(path, "utf8")));
}

function writeSpent(folder: string, spent: z.infer<typeof Spent>): void {
  const path = join(folder, SPENT_NAME);
  writeFileSync(`${path}.tmp`, JSON.stringify(spent), { mode: 0o600 });
  renameSync(`${path}.tmp`, path);
}
