import type { Duplex } from "node:stream";
import { authorityText, parseTargetHost, type TargetHost } from "../address/target-host.ts";
import type { RequestHead, RequestTarget } from "../http/head.ts";
import type { AnswerVerdict, RelayVerdict } from "../http/relay-options.ts";
import { forwardToMirror, isMirrored } from "./carry-to-mirror.ts";
import { decideRequest } from "./decide-egress.ts";
import { type Attempt, denialAnswer, describePolicy, type Refusal } from "./denial.ts";
import type { EgressContext } from "./egress-context.ts";
import { toOrigin } from "./forward-request.ts";
import { createPlainPassages } from "./plain-passages.ts";

/** The plain HTTP requests of one client of the proxy. */
export interface PlainRequests {
  decide(head: RequestHead, target: RequestTarget): RelayVerdict | Promise<RelayVerdict>;
  /** Ends the passages that were opened for the client. */
  close(): void;
}

export function createPlainRequests(context: EgressContext, client: Duplex): PlainRequests {
  const passages = createPlainPassages(context, { client, via: "http" });
  const parse = rememberLast(parseTargetHost);
  return {
    decide(head, target) {
      if (target.form === "origin" || target.form === "asterisk") return ownPage(context, head, target);
      const host = parse(target.host);
      const port = target.port ?? 80;
      const attempt: Attempt = { host: host?.text ?? "", port, via: "http", method: head.method, path: target.path };
      const refuse = (refusal: Refusal) => denialAnswer(context.deny(attempt, refusal));
      if (host === null) return refuse({ reason: "bad_request", why: "the target is not a valid host" });
      if (target.scheme === "https") {
        return refuse({
          reason: "bad_request",
          why: "https:// URLs need CONNECT to stay encrypted; set https_proxy to an http:// address",
        });
      }
      if (isMirrored(context, { host, port })) return forwardToMirror(context, { host, port, head, path: target.path });
      const decision = decideRequest(context.policy(), { host, port, method: head.method, path: target.path });
      if (!decision.allowed) return refuse(decision);
      const request = toOrigin(head, { path: target.path, authority: authorityText(host, port, 80) });
      return passages.forward({ grant: decision.grant, request });
    },
    close: passages.close,
  };
}

/** Answers a request for the proxy itself, such as from a browser. */
function ownPage(context: EgressContext, head: RequestHead, target: RequestTarget): AnswerVerdict {
  if (target.path !== "/" || (head.method !== "GET" && head.method !== "HEAD")) {
    return {
      kind: "answer",
      status: 404,
      body: "This is Caisson's proxy, which only serves other hosts. Set http_proxy and https_proxy to it.\n",
    };
  }
  return {
    kind: "answer",
    status: 200,
    body: `This is the outbound proxy of a Caisson sandbox (HTTP, CONNECT and SOCKS5).\n\n${describePolicy(context.policy())}\n`,
  };
}

/** Remembers the last result, because clients request the same host again and again. */
function rememberLast(parse: (text: string) => TargetHost | null): (text: string) => TargetHost | null {
  let last: { text: string; host: TargetHost | null } | null = null;
  return (text) => {
    if (last?.text !== text) last = { text, host: parse(text) };
    return last.host;
  };
}
