import type { Duplex } from "node:stream";
import type { NetworkVia } from "../../contract/network-event.ts";
import type { RequestHead } from "../http/head.ts";
import type { Verdict } from "../http/relay-options.ts";
import { resetStream } from "../http/reset-stream.ts";
import type { Grant } from "./decide-egress.ts";
import { denialAnswer, isDenial } from "./denial.ts";
import type { EgressContext } from "./egress-context.ts";
import { forwardRequest } from "./forward-request.ts";
import type { Passage } from "./passages.ts";
import { openPassage } from "./passages.ts";

/** Hosts that one connection of a client has open at once. */
const PASSAGES_MAX = 32;

export interface PlainPassages {
  /** A request in origin form that `grant` is for. */
  forward(options: { grant: Grant; request: RequestHead }): Verdict | Promise<Verdict>;
  /** Ends all of them. */
  close(): void;
}

/**
 * One passage for each host that a client asks for in plain HTTP; it stays while the client's connection does, and so
 * does the address.
 */
export function createPlainPassages(context: EgressContext, { client, via }: { client: Duplex; via: NetworkVia }): PlainPassages {
  const open = new Map<string, Passage>();
  let currentKey: string | null = null;
  const through = (passage: Passage, key: string, request: RequestHead) =>
    forwardRequest(context, { passage, request, tls: false, via, key, measured: true });
  return {
    forward({ grant, request }) {
      const { host, port } = grant;
      // A connection to a private address must not be used by a request whose rules do not lead there.
      const key = `${host.text} ${port} ${grant.rules.some((rule) => rule.private) ? "private" : "public"}`;
      currentKey = key;
      const known = open.get(key);
      if (known !== undefined && !known.ended) return through(known, key, request);
      // When a passage is ended, so is the client's connection, but only if that is what the client waits for.
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
