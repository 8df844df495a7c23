import type { Duplex } from "node:stream";
import type { NetworkVia } from "../../contract/network/network-event.ts";
import { authorityText, parseTargetHost } from "../address/target-host.ts";
import type { RequestHead } from "../http/head.ts";
import { requestTarget } from "../http/head.ts";
import type { RelayVerdict } from "../http/relay-options.ts";
import { decideRequest, reaching } from "./decide-egress.ts";
import { attemptOf, denialAnswer, type Refusal } from "./denial.ts";
import type { EgressContext } from "./egress-context.ts";
import { forwardRequest, toOrigin } from "./forward-request.ts";
import type { Passage } from "./passages.ts";

export interface TunnelRequests {
  decide(head: RequestHead): RelayVerdict | Promise<RelayVerdict>;
  /** Closes the initial connection if no request used it. */
  close(): void;
}

interface TunnelRequestsOptions {
  passage: Passage;
  via: NetworkVia;
  tls: boolean;
  /** An open connection for the first request. If null, a new one is made. */
  upstream: Duplex | null;
}

/**
 * Decides on the requests that we see in one tunnel. The current policy must allow each request, and each must be for
 * the tunnel's host.
 */
export function createTunnelRequests(context: EgressContext, options: TunnelRequestsOptions): TunnelRequests {
  const { passage, via, tls } = options;
  let { upstream } = options;
  const { host, port } = passage.grant;
  const authority = authorityText(host, port, tls ? 443 : 80);
  const refuse = (head: RequestHead, refusal: Refusal) => denialAnswer(context.deny(attemptOf(passage.grant, via, head), refusal));
  return {
    decide(head) {
      const target = requestTarget(head);
      if (target.form !== "origin" && target.form !== "asterisk")
        return refuse(head, { reason: "bad_request", why: "the request target must be a path, not a URL" });
      if (target.host !== "") {
        const named = parseTargetHost(target.host);
        if (named?.text !== host.text || (target.port ?? port) !== port)
          return { ...refuse(head, { reason: "name_mismatch" }), close: true };
      }
      const decision = decideRequest(context.policy(), { host, port, method: head.method, path: target.path });
      if (!decision.allowed) return refuse(head, decision);
      if (passage.pinned === null || reaching(decision.grant, passage.pinned.reach) === null)
        return refuse(head, { reason: "private_address" });
      return forwardRequest(context, {
        passage,
        request: toOrigin(head, { path: target.path, authority }),
        tls,
        via,
        key: authority,
        measured: false,
        upstream() {
          const ready = upstream?.destroyed === false ? upstream : null;
          upstream = null;
          return ready;
        },
      });
    },
    close() {
      upstream?.destroy();
    },
  };
}
