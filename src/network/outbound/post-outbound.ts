import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { resolveByHost } from "../egress/resolve.ts";
import { connectionWords, lookupOf, pinnedAddress } from "./pinned-address.ts";

/** The time for the whole exchange. A slower server counts as not answering. */
const TIMEOUT_MS = 10_000;
/** We only read the status of an answer. An endless one is cut off. */
const ANSWER_BYTES_MAX = 64 * 1024;

export interface OutboundPost {
  url: string;
  headers: Readonly<Record<string, string>>;
  body: string;
  /** Also allows private networks and this machine, and requests without TLS, but never forbidden addresses. */
  allowPrivate: boolean;
  signal?: AbortSignal;
}

export type OutboundAnswer = { status: number; retryAfterSeconds: number | null } | { error: string };

/**
 * Posts from this machine to an untrusted address. The name is looked up once, we connect to the checked address, and
 * redirects are not followed. Never throws.
 */
export async function postOutbound(post: OutboundPost, resolve = resolveByHost): Promise<OutboundAnswer> {
  const url = new URL(post.url);
  if (url.protocol !== "https:" && !post.allowPrivate) return { error: "the URL does not use https" };
  const address = await pinnedAddress(url, { allowPrivate: post.allowPrivate, resolve });
  if (typeof address !== "string") return { error: address.error };
  return await exchange(url, { post, address });
}

function exchange(url: URL, { post, address }: { post: OutboundPost; address: string }): Promise<OutboundAnswer> {
  return new Promise((resolve) => {
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const signal = post.signal === undefined ? timeout : AbortSignal.any([timeout, post.signal]);
    const body = Buffer.from(post.body);
    const send = url.protocol === "https:" ? requestHttps : requestHttp;
    const sent = send(url, {
      method: "POST",
      headers: { ...post.headers, "content-length": body.length },
      agent: false,
      signal,
      lookup: lookupOf(address),
    });
    sent.on("error", (error: NodeJS.ErrnoException) =>
      resolve({ error: timeout.aborted ? "the request timed out" : connectionWords(error) }),
    );
    sent.on("response", (answer) => {
      drain(answer);
      const retryAfter = /^[0-9]{1,6}$/.exec(answer.headers["retry-after"] ?? "")?.[0];
      resolve({ status: answer.statusCode ?? 0, retryAfterSeconds: retryAfter === undefined ? null : Number(retryAfter) });
    });
    sent.end(body);
  });
}

function drain(answer: IncomingMessage): void {
  let bytes = 0;
  answer.on("error", () => {});
  answer.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) answer.destroy();
  });
}
