import { type IncomingHttpHeaders, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { SecureContext } from "node:tls";
import { defined } from "../../lib/defined.ts";
import { resolveByHost } from "../egress/resolve.ts";
import { connectionWords, lookupOf, pinnedAddress } from "./pinned-address.ts";

export interface OutboundRequest {
  url: string;
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  headers: Readonly<Record<string, string>>;
  body?: Buffer;
  /** Also allows private networks and this machine, there even without TLS, but never forbidden addresses. */
  allowPrivate: boolean;
  /** The time for the whole exchange. */
  timeoutMs: number;
  /** A longer answer is cut off and counts as an error. */
  answerBytesMax: number;
  /** The certificates to trust. Default: Node's own. */
  secureContext?: SecureContext;
  signal?: AbortSignal;
}

export type OutboundReply =
  | { kind: "answered"; status: number; headers: IncomingHttpHeaders; body: Buffer }
  /** `refused`: the request was not sent, and never will be. */
  | { kind: "failed"; why: string; reason: "refused" | "unreachable" | "too_large" | "late" };

/**
 * Sends a request to an untrusted address and returns the whole answer. The name is looked up once, we connect to the
 * checked address, redirects are not followed, and no connection is kept between requests. Never throws.
 */
export async function requestOutbound(request: OutboundRequest, resolve = resolveByHost): Promise<OutboundReply> {
  const url = new URL(request.url);
  const { allowPrivate } = request;
  const isClear = url.protocol === "http:";
  if (url.protocol !== "https:" && !(isClear && allowPrivate))
    return { kind: "failed", reason: "refused", why: "the URL does not use https" };
  const address = await pinnedAddress(url, { allowPrivate, refusePublic: isClear, resolve });
  if (typeof address === "string") return await exchange(url, { asked: request, address });
  return { kind: "failed", reason: address.isForbidden ? "refused" : "unreachable", why: address.error };
}

function exchange(url: URL, { asked: request, address }: { asked: OutboundRequest; address: string }): Promise<OutboundReply> {
  return new Promise((resolve) => {
    const timeout = AbortSignal.timeout(request.timeoutMs);
    const signal = request.signal === undefined ? timeout : AbortSignal.any([timeout, request.signal]);
    const send = url.protocol === "https:" ? requestHttps : requestHttp;
    const { method, body, answerBytesMax } = request;
    const headers = { ...request.headers, ...(body !== undefined && { "content-length": String(body.length) }) };
    const fail = (error: NodeJS.ErrnoException) =>
      resolve(
        timeout.aborted
          ? { kind: "failed", reason: "late", why: "the request timed out" }
          : { kind: "failed", reason: "unreachable", why: connectionWords(error) },
      );
    const sent = send(url, {
      method,
      headers,
      agent: false,
      signal,
      lookup: lookupOf(address),
      ...defined({ secureContext: request.secureContext }),
    });
    sent.on("error", fail);
    sent.on("response", (answer) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      answer.on("error", fail);
      answer.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes <= answerBytesMax) chunks.push(chunk);
        else {
          resolve({ kind: "failed", reason: "too_large", why: `the answer is longer than ${answerBytesMax} bytes` });
          answer.destroy();
        }
      });
      answer.on("aborted", () => fail(Object.assign(new Error("aborted"), { code: "ECONNRESET" })));
      answer.on("end", () =>
        resolve({ kind: "answered", status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(chunks) }),
      );
    });
    sent.end(body);
  });
}
