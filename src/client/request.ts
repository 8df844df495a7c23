import type { Problem } from "../contract/api/problem.ts";
import { CaissonError, errorCodes } from "../contract/error/error.ts";
import { ignore } from "../lib/failures.ts";
import type { BodyInput, Json, Params, QueryInput, RouteName } from "../verbs/routes.ts";
import { pathOf } from "../verbs/verb-facts.ts";
import { ATTEMPTS_MAX, pause, pauseBefore } from "./attempts.ts";
import { boundedJson } from "./bounded-json.ts";
import { certificateProblem } from "./certificate-problem.ts";
import { whileAlive } from "./sign-of-life.ts";
import type { OpenSocket } from "./stream-socket.ts";

/** Maximum number of attempts when connections break. */
const REQUESTS_MAX = 5;

/** Limits for following the station's Retry-After: per pause, and in total. */
const RETRY_AFTER_SECONDS_MAX = 5;
const RETRY_MS_MAX = 10_000;

/** The client's `fetch`: the global one of browsers and Node, or a custom one. */
export type Fetch = (url: string, init: RequestInit) => Promise<Answer>;

/** The part of `Response` that the client needs. For a real one, Node would load its whole `fetch` implementation. */
export type Answer = Pick<Response, "ok" | "status" | "body" | "json">;

export interface Connection {
  /** The station's address without a trailing slash. */
  url: string;
  token: string | undefined;
  fetch: Fetch;
  openSocket: OpenSocket;
  /** Aborted when the caller wants to exit: an unresponsive station is then given up sooner. */
  leaving?: AbortSignal | undefined;
  /** Overrides the silence before a health check, for tests. */
  silenceMs?: number | undefined;
  /** Whether the station ever answered. If so and it is absent, it may be restarting, so we wait for it. */
  wasReached?: boolean;
}

export interface Signal {
  signal?: AbortSignal;
}

/** The input of a call. Parts that its route does not have are optional. */
export type CallInput<Name extends RouteName> = { signal?: AbortSignal } & InputField<"params", Params<Name>> &
  InputField<"query", QueryInput<Name>> &
  InputField<"body", BodyInput<Name>>;
type InputField<Key extends string, Value> = [Value] extends [undefined]
  ? unknown
  : object extends Value
    ? { [K in Key]?: Value }
    : { [K in Key]: Value };

export interface AnyInput {
  params?: Readonly<Record<string, string>>;
  query?: object;
  body?: unknown;
  signal?: AbortSignal;
}

/** Makes a call whose answer is JSON or empty. Throws the station's errors, and `unavailable`. */
export async function call<Name extends RouteName>(to: Connection, name: Name, input: CallInput<Name>): Promise<Json<Name>> {
  return (await callRoute(to, name, input)) as Json<Name>;
}

/** Like `call`, for a route that is only known at run time. */
export async function callRoute(to: Connection, name: RouteName, input: AnyInput): Promise<unknown> {
  const { attempt, repeat } = requestOf(to, name, { input, accept: "application/json" });
  const whole = async () => await readJson(to, await attempt(), input.signal);
  return await (repeat === null ? whole() : untilAnswered(whole, repeat));
}

async function readJson(to: Connection, response: Answer, signal: AbortSignal | undefined): Promise<unknown> {
  if (response.status === 204) return undefined;
  try {
    return await whileAlive(to, () => boundedJson(response));
  } catch (cause) {
    if (signal?.aborted) throw new CaissonError("cancelled", "the request was cancelled", { cause });
    if (cause instanceof CaissonError) throw cause;
    throw new CaissonError("unavailable", `the station at ${to.url} broke off in the middle of its answer`, {
      cause,
      details: { isBroken: true },
    });
  }
}

/** Returns the answer itself, for callers that stream its body. Throws as `call` does. */
export async function send(to: Connection, name: RouteName, options: SendOptions): Promise<Answer> {
  const { attempt, repeat } = requestOf(to, name, options);
  return await (repeat === null ? attempt() : untilAnswered(attempt, repeat));
}

interface SendOptions {
  input: AnyInput;
  accept: string;
  headers?: Readonly<Record<string, string>>;
}

/** Prepares one attempt of a request, and its retry policy; null if it must not be repeated. */
function requestOf(to: Connection, name: RouteName, options: SendOptions): { attempt: () => Promise<Answer>; repeat: Repeat | null } {
  const { input, accept } = options;
  const { method, path } = pathOf(name);
  const { body, contentType } = bodyOf(input.body);
  const headers: Record<string, string> = {
    accept,
    ...(to.token !== undefined && { authorization: `Bearer ${to.token}` }),
    ...(contentType !== undefined && { "content-type": contentType }),
    ...options.headers,
  };
  const url = `${to.url}${fillPath(path, input.params ?? {})}${queryOf(input.query)}`;
  const init = {
    method,
    headers,
    // A redirect target has no claim on the token or the body.
    redirect: "manual",
    ...(body !== undefined && { body }),
    ...(isStream(body) && { duplex: "half" }),
    ...(input.signal && { signal: input.signal }),
  } as RequestInit;
  const attempt = () => sendRequest(to, { url, init, name });
  return { attempt, repeat: isSafeToRepeat(name, { accept, body }) ? { to, method, headers, signal: input.signal } : null };
}

interface Repeat {
  to: Connection;
  method: string;
  headers: Record<string, string>;
  signal: AbortSignal | undefined;
}

async function sendRequest(to: Connection, { url, init, name }: { url: string; init: RequestInit; name: RouteName }): Promise<Answer> {
  let response: Answer;
  try {
    response = await whileAlive(to, (signal) => to.fetch(url, { ...init, signal }), init.signal ?? undefined);
    to.wasReached = true;
  } catch (cause) {
    if (init.signal?.aborted) throw new CaissonError("cancelled", `${name} was cancelled`, { cause });
    if (cause instanceof CaissonError) throw cause;
    const untrusted = certificateProblem(cause, to.url);
    if (untrusted !== null) throw untrusted;
    throw new CaissonError("unavailable", `the station at ${to.url} cannot be reached`, {
      cause,
      hint: "Run `caisson status` to see whether it is running.",
      details: { isBroken: !isAbsent(cause), isAbsent: isAbsent(cause) },
    });
  }
  if (response.ok) return response;
  throw await failureOf(response);
}

/** Returns whether no process listens there, so that an immediate retry is useless. */
function isAbsent(error: unknown): boolean {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  if (code === "ECONNREFUSED" || code === "ENOENT" || code === "ENOTFOUND") return true;
  return cause !== undefined && isAbsent(cause);
}

/** Returns false for a stream, which cannot be sent again, and for a command, which has ended with its request. */
function isSafeToRepeat(name: RouteName, { accept, body }: { accept: string; body: unknown }): boolean {
  return accept === "application/json" && name !== "sandboxes.exec" && !isStream(body);
}

/**
 * Retries when the connection breaks before the answer. Changes carry an idempotency key, so they happen once; if the
 * station is still working on the first attempt, we wait for it.
 */
async function untilAnswered<Result>(attempt: () => Promise<Result>, { to, method, headers, signal }: Repeat): Promise<Result> {
  if (method === "POST") headers["idempotency-key"] ??= crypto.randomUUID();
  let hasBroken = false;
  let waitedMs = 0;
  for (let attempts = 1; ; attempts++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof CaissonError) || attempts > ATTEMPTS_MAX) throw error;
      const retryMs = retryAfterMs(error);
      if (retryMs !== null && attempts < REQUESTS_MAX && waitedMs + retryMs <= RETRY_MS_MAX) {
        waitedMs += retryMs;
        await pause(retryMs, signal);
        if (signal?.aborted) throw new CaissonError("cancelled", "the request was cancelled");
        continue;
      }
      const broke = error.code === "unavailable" && error.details?.isBroken === true;
      // The station was reachable before, so it may be restarting; it did not receive this attempt.
      const isAway = error.code === "unavailable" && error.details?.isAbsent === true && to.wasReached === true;
      if (!isAway && attempts >= REQUESTS_MAX) throw error;
      // The first attempt may have taken effect, and a second one would then find a changed resource.
      if (broke && method !== "POST" && method !== "GET") throw error;
      if (!broke && !isAway && !(hasBroken && error.code === "busy")) throw error;
      hasBroken ||= broke;
    }
    await pauseBefore(attempts, signal);
    if (signal?.aborted) throw new CaissonError("cancelled", "the request was cancelled");
  }
}

/**
 * Returns when to retry an overloaded station, which has done nothing yet; null to give up. Adds jitter to spread
 * callers.
 */
function retryAfterMs({ code, details }: CaissonError): number | null {
  const seconds = details?.overload === true || details?.stalledMs !== undefined ? details.retryAfterSeconds : undefined;
  if ((code !== "busy" && code !== "unavailable") || typeof seconds !== "number" || seconds > RETRY_AFTER_SECONDS_MAX) return null;
  return seconds * 1000 * (1 + Math.random() / 4);
}

async function failureOf(response: Answer): Promise<CaissonError> {
  const problem = ((await ignore(boundedJson(response), "reported as an answer without a reason")) ?? null) as Problem | null;
  if (problem === null || !Object.hasOwn(errorCodes, problem.code)) {
    return new CaissonError("protocol", `the station answered ${response.status} without a reason`);
  }
  return errorOf(problem);
}

/** Converts a problem to an error. */
export function errorOf({ code, detail, hint, details }: Problem): CaissonError {
  return new CaissonError(code, detail, { ...(hint !== undefined && { hint }), ...(details !== undefined && { details }) });
}

/** Duck-typed: an `instanceof` check would make Node load the class with every request. */
function isStream(body: unknown): boolean {
  return typeof body === "object" && body !== null && "getReader" in body;
}

function bodyOf(body: unknown): { body: RequestInit["body"] | undefined; contentType: string | undefined } {
  if (body === undefined) return { body: undefined, contentType: undefined };
  if (body instanceof Uint8Array || isStream(body)) {
    return { body: body as RequestInit["body"], contentType: "application/octet-stream" };
  }
  return { body: JSON.stringify(body), contentType: "application/json" };
}

export function fillPath(path: string, params: Readonly<Record<string, string>>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
}

export function queryOf(query: object | undefined): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const each of Array.isArray(value) ? value : [value]) if (each !== undefined) search.append(name, String(each));
  }
  return search.size === 0 ? "" : `?${search}`;
}

/** Returns the body of a binary answer. */
export function streamOf({ body }: Answer): ReadableStream<Uint8Array> {
  return body ?? new ReadableStream({ start: (controller) => controller.close() });
}
