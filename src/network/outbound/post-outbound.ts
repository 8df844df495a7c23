import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { resolveByHost } from "../egress/resolve.ts";
import { connectionWords, lookupOf, pinnedAddress } from "./pinned-address.ts";

/** For the whole exchange; who takes longer is not listening. */
const TIMEOUT_MS = 10_000;
/** Of an answer nobody reads more than the status; one that does not end is cut off. */
const ANSWER_BYTES_MAX = 64 * 1024;

export interface OutboundPost {
  url: string;
  headers: Readonly<Record<string, string>>;
  body: string;
  /** Also to private networks and this machine, and without TLS; never to what nobody may reach. */
  allowPrivate: boolean;
  signal?: AbortSignal;
}

export type OutboundAnswer = { status: number; retryAfterSeconds: number | null } | { error: string };

/**
 * Posts something from this machine to an address that somebody else named. The name is looked up once, and the
 * connection made to an address that was checked; redirects are not followed. Never throws.
 */
export async function postOutbound(post: OutboundPost, resolve = resolveByHost): Promise<OutboundAnswer> {
  const url = new URL(post.url);
  if (url.protocol !== "https:" && !post.allowPrivate) return { error: "it is not reached by https" };
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
      resolve({ error: timeout.aborted ? "there was no answer in time" : connectionWords(error) }),
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
