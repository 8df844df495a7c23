import type { Duplex } from "node:stream";
import type { NetworkVia } from "../../contract/network/network-event.ts";
import type { RequestHead } from "../http/head.ts";
import type { RelayVerdict } from "../http/relay-options.ts";
import { resetStream } from "../http/reset-stream.ts";
import type { Grant } from "./decide-egress.ts";
import { denialAnswer, isDenial } from "./denial.ts";
import type { EgressContext } from "./egress-context.ts";
import { forwardRequest } from "./forward-request.ts";
import type { Passage } from "./passages.ts";
import { openPassage } from "./passages.ts";

/** How many hosts one client connection may have open at once. */
const PASSAGES_MAX = 32;

export interface PlainPassages {
  /** Forwards a request in origin form that `grant` allows. */
  forward(options: { grant: Grant; request: RequestHead }): RelayVerdict | Promise<RelayVerdict>;
  /** Ends all passages. */
  close(): void;
}

/**
 * Keeps one passage for each host that a client requests in plain HTTP. The passage and its address last as long as the
 * client's connection.
 */
export function createPlainPassages(context: EgressContext, { client, via }: { client: Duplex; via: NetworkVia }): PlainPassages {
  const open = new Map<string, Passage>();
  let currentKey: string | null = null;
  const through = (passage: Passage, key: string, request: RequestHead) =>
    forwardRequest(context, { passage, request, tls: false, via, key, measured: true });
  return {
    forward({ grant, request }) {
      const { host, port } = grant;
      // A request must not use a connection to a private address that its rules do not allow.
      const key = `${host.text} ${port} ${grant.rules.some((rule) => rule.private) ? "private" : "public"}`;
      currentKey = key;
      const known = open.get(key);
      if (known !== undefined && !known.ended) return through(known, key, request);
      // Ending a passage also ends the client's connection, but only if the client is waiting for this passage.
      const ended = { destroy: () => void (currentKey === key && resetStream(client)) };
      const decision = { allowed: true, grant } as const;
      return openPassage(context, { host, port, via, client: ended, method: request.method, path: request.target, decision }).then(
        (passage) => {
          if (isDenial(passage)) return denialAnswer(passage);
          if (client.destroyed) passage.end();
          open.set(key, passage);
          endOldest(open);
          return through(passage, key, request);
        },
      );
    },
    close() {
      for (const passage of open.values()) passage.end();
      open.clear();
    },
  };
}

function endOldest(open: Map<string, Passage>): void {
  for (const [key, passage] of open) {
    if (open.size <= PASSAGES_MAX) return;
    open.delete(key);
    passage.end();
  }
}
