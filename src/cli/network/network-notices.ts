import type { NetworkEvent } from "../../contract/network/network-event.ts";
import { type Line, line } from "../terminal/line.ts";

const NOTICES_MAX = 20;

export interface NetworkNotices {
  take(event: NetworkEvent): void;
  /** Prints the notices held back so far. */
  flush(): Promise<void>;
}

/**
 * Reports connections that were denied or failed, each host once per reason. A program on a terminal may use the whole
 * screen, which a notice would corrupt, so its notices are printed together `afterwards`.
 */
export function createNetworkNotices(options: {
  print: (lines: readonly Line[]) => Promise<void>;
  when: "atOnce" | "afterwards";
}): NetworkNotices {
  const reportedKeys = new Set<string>();
  const held: Line[] = [];
  return {
    take(event) {
      if (event.type !== "network.denied" && event.type !== "network.failed") return;
      const { host, port, reason, text } = event.data;
      const key = `${host}:${port} ${reason}`;
      if (reportedKeys.size >= NOTICES_MAX || reportedKeys.has(key)) return;
      reportedKeys.add(key);
      const notice = line`caisson: network: ${text.split("\n").slice(0, 2).join(". ")}`;
      if (options.when === "atOnce") void options.print([notice]);
      else held.push(notice);
    },
    async flush() {
      if (held.length > 0) await options.print(held.splice(0));
    },
  };
}
