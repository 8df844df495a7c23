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
  /** Also to private networks and this machine, and there without TLS; never to what nobody may reach. */
  allowPrivate: boolean;
  /** For the whole exchange. */
  timeoutMs: number;
  /** An answer that is longer is cut off, and is an error. */
  answerBytesMax: number;
  /** By what servers are known; default Node's own. */
  secureContext?: SecureContext;
  signal?: AbortSignal;
}

export type OutboundReply =
  | { kind: "answered"; status: number; headers: IncomingHttpHeaders; body: Buffer }
  /** `refused`: it was not sent, and never will be. */
  | { kind: "failed"; why: string; reason: "refused" | "unreachable" | "too_large" | "late" };

/**
 * Asks something of an address that somebody else named, and takes the whole answer. The name is looked up once, and
 * the connection made to an address that was checked; redirects are not followed, and nothing is kept between requests.
 * Never throws.
 */
export async function requestOutbound(asked: OutboundRequest, resolve = resolveByHost): Promise<OutboundReply> {
  const url = new URL(asked.url);
  const { allowPrivate } = asked;
  const isClear = url.protocol === "http:";
  if (url.protocol !== "https:" && !(isClear && allowPrivate))
    return { kind: "failed", reason: "refused", why: "it is not reached by https" };
  const address = await pinnedAddress(url, { allowPrivate, refusePublic: isClear, resolve });
  if (typeof address === "string") return await exchange(url, { asked, address });
  return { kind: "failed", reason: address.isForbidden ? "refused" : "unreachable", why: address.error };
}

function exchange(url: URL, { asked, address }: { asked: OutboundRequest; address: string }): Promise<OutboundReply> {
  return new Promise((resolve) => {
    const timeout = AbortSignal.timeout(asked.timeoutMs);
    const signal = asked.signal === undefined ? timeout : AbortSignal.any([timeout, asked.signal]);
    const send = url.protocol === "https:" ? requestHttps : requestHttp;
    const { method, body, answerBytesMax } = asked;
    const headers = { ...asked.headers, ...(body !== undefined && { "content-length": String(body.length) }) };
    const fail = (error: NodeJS.ErrnoException) =>
      resolve(
        timeout.aborted
          ? { kind: "failed", reason: "late", why: "there was no answer in time" }
          : { kind: "failed", reason: "unreachable", why: connectionWords(error) },
      );
    const sent = send(url, {
      method,
      headers,
      agent: false,
      signal,
      lookup: lookupOf(address),
      ...defined({ secureContext: asked.secureContext }),
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
