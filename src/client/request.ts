import { pathOf, type RouteName } from "../contract/api/paths.ts";
import type { Problem } from "../contract/api/problem.ts";
import type { BodyInput, Json, Params, QueryInput } from "../contract/api/routes.ts";
import { CaissonError, errorCodes } from "../contract/error.ts";
import { ATTEMPTS_MAX, pause, pauseBefore } from "./attempts.ts";
import { boundedJson } from "./bounded-json.ts";
import { certificateProblem } from "./certificate-problem.ts";
import { whileAlive } from "./sign-of-life.ts";
import type { OpenSocket } from "./stream-socket.ts";

/** How often a request is made before a connection that breaks is taken for a failure. */
const REQUESTS_MAX = 5;

/** How long a station that says when to come again is waited for: at a time, and in all. */
const RETRY_AFTER_SECONDS_MAX = 5;
const RETRY_MS_MAX = 10_000;

/** What `fetch` is to the client: the global one of browsers and Node, or one that goes another way. */
export type Fetch = (url: string, init: RequestInit) => Promise<Answer>;

/** As much of a `Response` as the client needs. To make a real one, Node loads all that its `fetch` is made of. */
export type Answer = Pick<Response, "ok" | "status" | "body" | "json">;

export interface Connection {
  /** Without a final slash. */
  url: string;
  token: string | undefined;
  fetch: Fetch;
  openSocket: OpenSocket;
  /** Aborted when the caller wants to leave: a station that does not answer is given up sooner. */
  leaving?: AbortSignal | undefined;
  /** Another silence after which the station is asked for a sign of life, for tests. */
  silenceMs?: number | undefined;
  /** Whether the station ever answered: one that is absent then is waited for, since it may be starting again. */
  wasReached?: boolean;
}

export interface Signal {
  signal?: AbortSignal;
}

/** What a call takes; what its route does not have may be left out. */
export type CallInput<Name extends RouteName> = { signal?: AbortSignal } & Given<"params", Params<Name>> &
  Given<"query", QueryInput<Name>> &
  Given<"body", BodyInput<Name>>;
type Given<Key extends string, Value> = [Value] extends [undefined]
  ? unknown
  : object extends Value
    ? { [K in Key]?: Value }
    : { [K in Key]: Value };

interface AnyInput {
  params?: Readonly<Record<string, string>>;
  query?: object;
  body?: unknown;
  signal?: AbortSignal;
}

/** One call whose answer is JSON, or nothing. Throws what the station says went wrong, and `unavailable`. */
export async function call<Name extends RouteName>(to: Connection, name: Name, input: CallInput<Name>): Promise<Json<Name>> {
  const { attempt, repeat } = requestOf(to, name, { input, accept: "application/json" });
  const whole = async () => await readJson(to, await attempt(), input.signal);
  return (await (repeat === null ? whole() : untilAnswered(whole, repeat))) as Json<Name>;
}

async function readJson(to: Connection, response: Answer, signal: AbortSignal | undefined): Promise<unknown> {
  if (response.status === 204) return undefined;
  try {
    return await whileAlive(to, () => boundedJson(response));
  } catch (cause) {
    if (signal?.aborted) throw new CaissonError("cancelled", "the request was given up", { cause });
    if (cause instanceof CaissonError) throw cause;
    throw new CaissonError("unavailable", `the station at ${to.url} broke off in the middle of its answer`, {
      cause,
      details: { isBroken: true },
    });
  }
}

/** The answer itself, for those whose body is a stream. Throws as `call` does. */
export async function send(to: Connection, name: RouteName, options: SendOptions): Promise<Answer> {
  const { attempt, repeat } = requestOf(to, name, options);
  return await (repeat === null ? attempt() : untilAnswered(attempt, repeat));
}

interface SendOptions {
  input: AnyInput;
  accept: string;
  headers?: Readonly<Record<string, string>>;
}

/** One attempt of a request, and how it is repeated; null where it must not be. */
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
  const url = `${to.url}${filled(path, input.params ?? {})}${queryOf(input.query)}`;
  const init = {
    method,
    headers,
    // A redirect target has no claim on the token or the body.
    redirect: "manual",
    ...(body !== undefined && { body }),
    ...(isStream(body) && { duplex: "half" }),
    ...(input.signal && { signal: input.signal }),
  } as RequestInit;
  const attempt = () => asked(to, { url, init, name });
  return { attempt, repeat: isSafeToRepeat(name, { accept, body }) ? { to, method, headers, signal: input.signal } : null };
}

interface Repeat {
  to: Connection;
  method: string;
  headers: Record<string, string>;
  signal: AbortSignal | undefined;
}

async function asked(to: Connection, { url, init, name }: { url: string; init: RequestInit; name: RouteName }): Promise<Answer> {
  let response: Answer;
  try {
    response = await whileAlive(to, (signal) => to.fetch(url, { ...init, signal }), init.signal ?? undefined);
    to.wasReached = true;
  } catch (cause) {
    if (init.signal?.aborted) throw new CaissonError("cancelled", `${name} was given up`, { cause });
    if (cause instanceof CaissonError) throw cause;
    const untrusted = certificateProblem(cause, to.url);
    if (untrusted !== null) throw untrusted;
    throw new CaissonError("unavailable", `the station at ${to.url} cannot be reached`, {
      cause,
      hint: "Is it running? `caisson status` tells.",
      details: { isBroken: !isAbsent(cause), isAbsent: isAbsent(cause) },
    });
  }
  if (response.ok) return response;
  throw await failureOf(response);
}

/** Nobody listens there: to ask again at once is of no use. */
function isAbsent(error: unknown): boolean {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  if (code === "ECONNREFUSED" || code === "ENOENT" || code === "ENOTFOUND") return true;
  return cause !== undefined && isAbsent(cause);
}

/** Of a stream nothing can be sent again; a command belongs to its request, and has ended with it. */
function isSafeToRepeat(name: RouteName, { accept, body }: { accept: string; body: unknown }): boolean {
  return accept === "application/json" && name !== "sandboxes.exec" && !isStream(body);
}

/**
 * Asks again when the connection broke before there was an answer. What does something has a key, so that it is done
 * once; while the station still does what a connection that broke asked for, it is waited for.
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
        if (signal?.aborted) throw new CaissonError("cancelled", "the request was given up");
        continue;
      }
      const broke = error.code === "unavailable" && error.details?.isBroken === true;
      // It was reachable before: it may be restarting, and did not receive this attempt.
      const isAway = error.code === "unavailable" && error.details?.isAbsent === true && to.wasReached === true;
      if (!isAway && attempts >= REQUESTS_MAX) throw error;
      // What was changed meanwhile is not what an earlier attempt found.
      if (broke && method !== "POST" && method !== "GET") throw error;
      if (!broke && !isAway && !(hasBroken && error.code === "busy")) throw error;
      hasBroken ||= broke;
    }
    await pauseBefore(attempts, signal);
    if (signal?.aborted) throw new CaissonError("cancelled", "the request was given up");
  }
}

/** When an overloaded station, which has done nothing, wants to be asked again. Callers are spread a little. */
function retryAfterMs({ code, details }: CaissonError): number | null {
  const seconds = details?.overload === true || details?.stalledMs !== undefined ? details.retryAfterSeconds : undefined;
  if ((code !== "busy" && code !== "unavailable") || typeof seconds !== "number" || seconds > RETRY_AFTER_SECONDS_MAX) return null;
  return seconds * 1000 * (1 + Math.random() / 4);
}

async function failureOf(response: Answer): Promise<CaissonError> {
  const problem = (await boundedJson(response).catch(() => null)) as Problem | null;
  if (problem === null || !Object.hasOwn(errorCodes, problem.code)) {
    return new CaissonError("protocol", `the station answered ${response.status} without saying why`);
  }
  return errorOf(problem);
}

/** What a problem is to a program. */
export function errorOf({ code, detail, hint, details }: Problem): CaissonError {
  return new CaissonError(code, detail, { ...(hint !== undefined && { hint }), ...(details !== undefined && { details }) });
}

/** By what it can do: to ask for the class has Node load it, for every request. */
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

export function filled(path: string, params: Readonly<Record<string, string>>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
}

export function queryOf(query: object | undefined): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const each of Array.isArray(value) ? value : [value]) if (each !== undefined) search.append(name, String(each));
  }
  return search.size === 0 ? "" : `?${search}`;
}

/** Of an answer that is bytes. */
export function streamOf({ body }: Answer): ReadableStream<Uint8Array> {
  return body ?? new ReadableStream({ start: (controller) => controller.close() });
}
