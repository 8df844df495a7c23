import { CaissonError } from "../../contract/error/error.ts";
import { jsonOrNull } from "../../lib/failures.ts";
import type { OutboundReply, OutboundRequest } from "../../network/outbound/request-outbound.ts";

/** The longest that a ship waits before a retry, even if the remote asks for more. */
const RETRY_AFTER_SECONDS_MAX = 3_600;
const WORDS_CHARACTERS_MAX = 300;

/** Access to a remote. No other object holds the token. */
export interface Connection {
  send(request: OutboundRequest): Promise<OutboundReply>;
  /** Returns null if there is no token. Throws `denied` for a request that must not carry it. */
  token(request: { method: string; url: string }): Promise<string | null>;
  allowPrivate: boolean;
  signal?: AbortSignal | undefined;
  now(): number;
}

export interface ForgeRequest {
  what: string;
  method: OutboundRequest["method"];
  url: string;
  headers?: Readonly<Record<string, string>>;
  body?: Buffer;
  /** Returns the Authorization header in the form that this remote expects. */
  authorization(token: string): string;
  timeoutMs: number;
  answerBytesMax: number;
}

export interface Answered {
  status: number;
  body: Buffer;
  contentType: string;
}

/**
 * Sends one request and returns its answer if the status is 2xx or in `statuses`. Throws `unavailable`, `timeout` and
 * `busy`, which are worth a retry (`details.retryAfterMs` if the remote says when), `denied`, `not_found`, `conflict`,
 * `protocol`, `too_large`. Messages quote the remote briefly, without the token.
 */
export async function ask(request: ForgeRequest, connection: Connection, statuses: readonly number[] = []): Promise<Answered> {
  const { method, url, what, body, timeoutMs, answerBytesMax } = request;
  const token = await connection.token({ method, url });
  const headers = { "user-agent": "caisson", ...request.headers, ...(token !== null && { authorization: request.authorization(token) }) };
  const { allowPrivate, signal } = connection;
  const reply = await connection.send({
    url,
    method,
    headers,
    allowPrivate,
    timeoutMs,
    answerBytesMax,
    ...(body !== undefined && { body }),
    ...(signal !== undefined && { signal }),
  });
  if (reply.kind === "failed") throw failureOf(reply, { what, host: new URL(url).host });
  const { status } = reply;
  const contentType = String(reply.headers["content-type"] ?? "");
  if ((status >= 200 && status < 300) || statuses.includes(status)) return { status, body: reply.body, contentType };
  throw refusalOf(reply, { what, host: new URL(url).host, token, nowMs: connection.now() });
}

function failureOf(reply: Extract<OutboundReply, { kind: "failed" }>, { what, host }: { what: string; host: string }): CaissonError {
  const message = `${what} failed at ${host}: ${reply.why}`;
  switch (reply.reason) {
    case "refused":
      return new CaissonError("denied", message, { hint: "Add --allow-private if the remote is at a private address." });
    case "too_large":
      return new CaissonError("too_large", message);
    case "late":
      return new CaissonError("timeout", message);
    case "unreachable":
      return new CaissonError("unavailable", message);
  }
}

type AnsweredReply = Extract<OutboundReply, { kind: "answered" }>;

function refusalOf(
  reply: AnsweredReply,
  { what, host, token, nowMs }: { what: string; host: string; token: string | null; nowMs: number },
): CaissonError {
  const { status } = reply;
  const words = wordsOf(reply, token);
  const message = `${what} failed: ${host} answered ${status}${words === "" ? "" : `, ${words}`}`;
  const retryAfterMs = patienceOf(reply, nowMs);
  if (status === 429 || (status === 403 && retryAfterMs !== null))
    return new CaissonError("busy", message, { details: { retryAfterMs: retryAfterMs ?? 0 } });
  if (status >= 500) return new CaissonError("unavailable", message, { details: { retryAfterMs: retryAfterMs ?? 0 } });
  if (status === 401 || status === 403)
    return new CaissonError("denied", message, { hint: "Check that the token has the necessary rights and has not expired." });
  if (status === 404) return new CaissonError("not_found", message, { hint: "Check the URL, and that the token has access to it." });
  if (status >= 300 && status < 400)
    return new CaissonError("protocol", `${message}; redirects are not followed`, { hint: "Use the URL that it redirects to." });
  return new CaissonError("conflict", message, { details: { status } });
}

/** Returns how long the remote asks us to wait, given in seconds or as a time; null if it does not ask. */
function patienceOf({ headers }: AnsweredReply, nowMs: number): number | null {
  const seconds = /^[0-9]{1,9}$/.exec(String(headers["retry-after"] ?? ""))?.[0];
  if (seconds !== undefined) return Math.min(Number(seconds), RETRY_AFTER_SECONDS_MAX) * 1000;
  const reset = /^[0-9]{1,12}$/.exec(String(headers["x-ratelimit-reset"] ?? ""))?.[0];
  if (headers["x-ratelimit-remaining"] !== "0" || reset === undefined) return null;
  return Math.min(Math.max(Number(reset) * 1000 - nowMs, 0), RETRY_AFTER_SECONDS_MAX * 1000);
}

/**
 * Returns the `message` of a forge's JSON answer, or the beginning of a plain-text answer, without the token. Treat it
 * as data.
 */
function wordsOf({ body, headers }: AnsweredReply, token: string | null): string {
  const text = body.subarray(0, 64 * 1024).toString("utf8");
  const isJson = String(headers["content-type"] ?? "").includes("json");
  const found = isJson ? messageIn(text) : /^text\/plain/.test(String(headers["content-type"] ?? "")) ? text : "";
  return withoutToken(found, token)
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim()
    .slice(0, WORDS_CHARACTERS_MAX);
}

function messageIn(text: string): string {
  const { message } = (jsonOrNull(text) ?? {}) as { message?: unknown };
  return typeof message === "string" ? message : "";
}

/** Removes every form of the token that we send, because a remote may echo it. */
export function withoutToken(text: string, token: string | null): string {
  if (token === null) return text;
  const forms = [token, encodeURIComponent(token), Buffer.from(token).toString("base64"), gitPassword(token)];
  return forms.reduce((clean, form) => clean.replaceAll(form, "***"), text);
}

/**
 * Returns the credentials for HTTP basic authentication, as git sends them. Forges accept any user name with a token.
 */
export function gitPassword(token: string): string {
  return Buffer.from(`x-access-token:${token}`).toString("base64");
}
