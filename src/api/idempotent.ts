import { createHash } from "node:crypto";
import { CaissonError } from "../contract/error/error.ts";
import { unreachable } from "../lib/unreachable.ts";
import type { Route } from "../verbs/route.ts";
import type { RouteName } from "../verbs/routes.ts";
import { jsonAnswer } from "./answer.ts";
import type { AnswerStore, AskedOnce, KeptAnswer } from "./answer-store.ts";
import type { Caller, Reply } from "./call.ts";

/** A call with an idempotency key: repeating it gives the same answer and has no further effect. */
export interface KeyedCall {
  route: Route;
  request: AskedOnce;
}

/** The parts of a call that matter here. */
export interface ReadCall {
  params: unknown;
  query: unknown;
  body: unknown;
  wants: "json" | "events";
}

/**
 * Returns the keyed call if the request has an idempotency key. Reads a byte body to its end, and stores it in `call`.
 * Throws `invalid` for a malformed key, or if the answer cannot be repeated.
 */
export async function keyedCall(
  call: ReadCall,
  { name, route, method, key, caller }: { name: RouteName; route: Route; method: string; key: string | null; caller: Caller },
): Promise<KeyedCall | null> {
  if (key === null || method !== "POST" || route.worksWithoutDisk === true) return null;
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new CaissonError("invalid", "the Idempotency-Key must be 1 to 255 visible ASCII characters", {
      hint: "Use a random UUID, for example.",
    });
  }
  if (call.wants === "events" || !takesKey(route)) {
    throw new CaissonError("invalid", "a stream cannot be repeated, so it takes no Idempotency-Key", {
      hint: takesKey(route) ? "Omit the key, or request JSON." : "Omit the key.",
    });
  }
  const digest = createHash("sha256").update(JSON.stringify([name, call.params, call.query]));
  if (route.body === "bytes") {
    const bytes = await collectBytes(call.body as AsyncIterable<Uint8Array>);
    call.body = [bytes];
    digest.update(bytes);
  } else digest.update(JSON.stringify(call.body ?? null));
  return { route, request: { caller: callerOf(caller), key, digest: digest.digest("base64") } };
}

/** Whether calls of this route can be compared and their answers repeated. Streams allow neither. */
export function takesKey({ answer, body, bodyBytesMax }: Route): boolean {
  const givesStream = answer.json === undefined && (answer.events !== undefined || answer.bytes !== undefined);
  return !givesStream && (body !== "bytes" || bodyBytesMax !== undefined);
}

function callerOf(caller: Caller): string {
  switch (caller.kind) {
    case "socket":
      return "socket";
    case "token":
      return caller.token.id;
    case "sandbox":
      return caller.sandbox;
    case "code":
      return `code for ${caller.pending.view.name}`;
    default:
      return unreachable(caller);
  }
}

async function collectBytes(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return Buffer.concat(all);
}

/** Makes the call, or repeats its answer if it was already made. `onDefect` receives failures to record the outcome. */
export async function answerOnce(
  { route, request }: KeyedCall,
  { answers, onDefect, make }: { answers: AnswerStore; onDefect: (error: unknown) => void; make: () => Promise<Reply<RouteName>> },
): Promise<{ reply: Reply<RouteName> } | { again: Response }> {
  const attempt = answers.begin(request);
  if (attempt.kind === "again") return { again: await replayAnswer(attempt.answer) };
  try {
    const reply = await make();
    // The call has taken effect. A failure to store its answer must not make it look otherwise.
    noteOrReport(() => attempt.keep(answerOf(route, reply)), onDefect);
    return { reply };
  } catch (error) {
    const failure = error instanceof CaissonError ? error : null;
    // A failure that may succeed later can be retried. So can a call that its caller cancelled, which leaves nothing
    // behind.
    const mayTryAgain = failure !== null && (failure.retryable || failure.code === "cancelled");
    noteOrReport(() => (mayTryAgain ? attempt.forget() : attempt.keep(failureOf(failure))), onDefect);
    throw error;
  }
}

function noteOrReport(note: () => void, onDefect: (error: unknown) => void): void {
  try {
    note();
  } catch (error) {
    onDefect(error);
  }
}

function answerOf({ answer, shownOnce }: Route, reply: Reply<RouteName>): KeptAnswer {
  if (!("json" in reply)) return { status: 204, body: null, isWhole: true };
  const isWhole = shownOnce !== true;
  return { status: answer.status ?? 200, body: isWhole ? JSON.stringify(reply.json) : null, isWhole };
}

/** After an internal failure of the station, the outcome is unknown. */
function failureOf(failure: CaissonError | null): KeptAnswer {
  const problem = failure ?? new CaissonError("internal", "the station failed to handle this request");
  return { status: 0, body: JSON.stringify(problem.toJSON()), isWhole: true };
}

async function replayAnswer({ status, body, isWhole }: KeptAnswer): Promise<Response> {
  if (!isWhole) {
    throw new CaissonError("conflict", "the request was already completed, but its answer was not stored", {
      hint: "Check the current state. To repeat the request, use a new key.",
      details: { done: true },
    });
  }
  if (status === 0) {
    const { code, message, ...rest } = JSON.parse(body ?? "{}") as ReturnType<CaissonError["toJSON"]>;
    throw new CaissonError(code, message, rest);
  }
  const response = body === null ? new Response(null, { status }) : await jsonAnswer(JSON.parse(body), status);
  response.headers.set("idempotency-replayed", "true");
  return response;
}
