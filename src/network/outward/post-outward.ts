import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { canonicalAddress, classifyAddress, reachOf } from "../address/addresses.ts";
import { parseTargetHost } from "../address/target-host.ts";
import { resolveByHost } from "../egress/resolve.ts";

/** For the whole exchange; who takes longer is not listening. */
const TIMEOUT_MS = 10_000;
/** Of an answer nobody reads more than the status; one that does not end is cut off. */
const ANSWER_BYTES_MAX = 64 * 1024;

export interface OutwardPost {
  url: string;
  headers: Readonly<Record<string, string>>;
  body: string;
  /** Also to private networks and this machine, and without TLS; never to what nobody may reach. */
  allowPrivate: boolean;
  signal?: AbortSignal;
}

export type OutwardAnswer = { status: number; retryAfterSeconds: number | null } | { error: string };

/**
 * Posts something from this machine to an address that somebody else named. The name is looked up once, and the
 * connection made to an address that was checked; redirects are not followed. Never throws.
 */
export async function postOutward(post: OutwardPost, resolve = resolveByHost): Promise<OutwardAnswer> {
  const url = new URL(post.url);
  if (url.protocol !== "https:" && !post.allowPrivate) return { error: "it is not reached by https" };
  const address = await pinned(url, { allowPrivate: post.allowPrivate, resolve });
  if (typeof address !== "string") return address;
  return await exchange(url, { post, address });
}

async function pinned(
  url: URL,
  { allowPrivate, resolve }: { allowPrivate: boolean; resolve: (name: string) => Promise<string[]> },
): Promise<string | { error: string }> {
  const host = parseTargetHost(url.hostname);
  if (host === null) return { error: "its host is none" };
  let found: string[];
  try {
    found = host.kind === "address" ? [host.text] : await resolve(host.text);
  } catch {
    return { error: `the name ${host.text} could not be looked up` };
  }
  const own = new Set(
    Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .flatMap(({ address }) => canonicalAddress(address) ?? []),
  );
  const usable = found
    .flatMap((each) => canonicalAddress(each) ?? [])
    .find((each) => {
      const reach = reachOf(classifyAddress(each, own));
      return reach === "public" || (reach === "private" && allowPrivate);
    });
  if (usable !== undefined) return usable;
  return { error: found.length === 0 ? `the name ${host.text} is not known` : `${host.text} leads to an address that is not reached` };
}

function exchange(url: URL, { post, address }: { post: OutwardPost; address: string }): Promise<OutwardAnswer> {
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
      lookup: (_name, options, done) => {
        const family = isIP(address);
        if (options.all === true) done(null, [{ address, family }]);
        else done(null, address, family);
      },
    });
    sent.on("error", (error: NodeJS.ErrnoException) =>
      resolve({ error: timeout.aborted ? "there was no answer in time" : wordsOf(error) }),
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

function wordsOf(error: NodeJS.ErrnoException): string {
  const words: Readonly<Record<string, string>> = {
    ECONNREFUSED: "the connection was refused",
    ECONNRESET: "the connection was reset",
    ENETUNREACH: "there is no route to it",
    EHOSTUNREACH: "there is no route to it",
    ABORT_ERR: "it was given up",
  };
  return words[error.code ?? ""] ?? `the connection failed (${error.code ?? "unknown"})`;
}
