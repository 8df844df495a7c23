import type { RegistryName } from "../../contract/network/network.ts";
import type { DenialReason } from "../../contract/network/network-event.ts";
import type { Emit } from "../egress/egress-options.ts";
import { createRepeats } from "../egress/repeats.ts";
import { portOf } from "./upstream-url.ts";

/**
 * Reports the activity of one connection from a sandbox to the mirror: its denials and, when it ends, one event for
 * each registry that it used.
 */
export interface ConnectionAccount {
  used(use: { registry: RegistryName; upstream: URL; address: string }): void;
  /** Reports the first denial of its kind at once, and the number of repeats at the end. */
  denied(denial: Denial): void;
  /** Takes the bytes as seen from inside. */
  ended(bytes: { sent: number; received: number }): void;
}

export interface Denial {
  reason: DenialReason;
  method: string;
  path: string;
  text: string;
}

interface Use {
  upstream: URL;
  address: string;
  requests: number;
}

/** Different denials on one connection. Further ones are reported by their reason alone. */
const DENIALS_MAX = 32;
const PATH_CHARS_MAX = 2048;
const TEXT_CHARS_MAX = 4096;

export function openAccount(emit: Emit, origin: URL): ConnectionAccount {
  const startedMs = performance.now();
  const uses = new Map<RegistryName, Use>();
  const tell = ({ reason, method, path, text }: Denial, count: number) => {
    const bounded = {
      host: origin.hostname.slice(0, 300),
      port: portOf(origin),
      method: method.slice(0, 32),
      path: path.slice(0, PATH_CHARS_MAX),
      text: text.slice(0, TEXT_CHARS_MAX),
    };
    emit({ type: "network.denied", data: { ...bounded, reason, via: "mirror", count } });
  };
  const denials = createRepeats<Denial>({
    tell,
    keyOf: ({ reason, method, path }) => [reason, method, path].join(" "),
    differentMax: DENIALS_MAX,
    summarised: (denial) => ({ ...denial, method: "*", path: "*" }),
  });
  return {
    used({ registry, upstream, address }) {
      const use = uses.get(registry) ?? { upstream, address: "", requests: 0 };
      uses.set(registry, { upstream, address: address === "" ? use.address : address, requests: use.requests + 1 });
    },
    denied: denials.add,
    ended({ sent, received }) {
      denials.flush();
      // A connection nearly always belongs to one client, so its bytes are reported once, with the first registry it
      // used.
      for (const [index, [registry, { upstream, address, requests }]] of [...uses].entries()) {
        const { hostname: host } = upstream;
        const bytes = index === 0 ? { sentBytes: sent, receivedBytes: received } : { sentBytes: 0, receivedBytes: 0 };
        const durationMs = Math.round(performance.now() - startedMs);
        const rule = `registry ${registry}`;
        emit({
          type: "network.closed",
          data: {
            host,
            port: portOf(upstream),
            via: "mirror",
            address,
            rule,
            inspected: origin.protocol === "https:",
            requests,
            ...bytes,
            durationMs,
          },
        });
      }
    },
  };
}
