import type { NetworkEvent } from "../../contract/network-event.ts";
import { type Line, line } from "../terminal/line.ts";

const NOTICES_MAX = 20;

export interface NetworkNotices {
  take(event: NetworkEvent): void;
  /** Prints what was held back. */
  flush(): Promise<void>;
}

/**
 * What the network refused or could not reach, each host once for each reason. A program with a terminal may have the
 * whole screen, and a line in the middle of it would spoil the picture: its notices are told `afterwards`, together.
 */
export function createNetworkNotices(options: {
  print: (lines: readonly Line[]) => Promise<void>;
  when: "atOnce" | "afterwards";
}): NetworkNotices {
  const told = new Set<string>();
  const held: Line[] = [];
  return {
    take(event) {
      if (event.type !== "network.denied" && event.type !== "network.failed") return;
      const { host, port, reason, text } = event.data;
      const key = `${host}:${port} ${reason}`;
      if (told.size >= NOTICES_MAX || told.has(key)) return;
      told.add(key);
      const notice = line`caisson: network: ${text.split("\n").slice(0, 2).join(". ")}`;
      if (options.when === "atOnce") void options.print([notice]);
      else held.push(notice);
    },
    async flush() {
      if (held.length > 0) await options.print(held.splice(0));
    },
  };
}
