import { createHash } from "node:crypto";
import type { RouteName } from "../contract/api/paths.ts";
import type { Route } from "../contract/api/route.ts";
import { CaissonError } from "../contract/error.ts";
import { unreachable } from "../lib/unreachable.ts";
import { jsonAnswer } from "./answer.ts";
import type { Caller, Reply } from "./call.ts";
import type { AskedOnce, KeptAnswer, KeptAnswers } from "./kept-answers.ts";

/** A call with a key: the same once more gives the same answer, and does nothing. */
export interface KeyedCall {
  route: Route;
  asked: AskedOnce;
}

/** As far as it is looked at here. */
export interface ReadCall {
  params: unknown;
  query: unknown;
  body: unknown;
  wants: "json" | "events";
}

/**
 * What a call asks for only once, if it says so. The body of one that sends bytes is read to its end for it, and is in
 * `call` from then on. Throws `invalid` for a key that cannot be one, or where nothing can be given again.
 */
export async function keyedCall(
  call: ReadCall,
  { name, route, method, key, caller }: { name: RouteName; route: Route; method: string; key: string | null; caller: Caller },
): Promise<KeyedCall | null> {
  if (key === null || method !== "POST" || route.worksWithoutDisk === true) return null;
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new CaissonError("invalid", "the Idempotency-Key is not 1 to 255 visible ASCII characters", { hint: "A random UUID will do." });
  }
  if (call.wants === "events" || !takesKey(route)) {
    throw new CaissonError("invalid", "a stream cannot be given again, so it takes no Idempotency-Key", {
      hint: takesKey(route) ? "Leave the key out, or ask for JSON." : "Leave the key out.",
    });
  }
  const digest = createHash("sha256").update(JSON.stringify([name, call.params, call.query]));
  if (route.body === "bytes") {
    const bytes = await collected(call.body as AsyncIterable<Uint8Array>);
    call.body = [bytes];
    digest.update(bytes);
  } else digest.update(JSON.stringify(call.body ?? null));
  return { route, asked: { caller: callerOf(caller), key, digest: digest.digest("base64") } };
}

/** Whether a call of this route can be told from another, and its answer given again: no stream can be either. */
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

async function collected(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return Buffer.concat(all);
}

/** Does it, unless it was done: then what was answered is answered again. `onDefect` hears what could not be noted. */
export async function answeredOnce(
  { route, asked }: KeyedCall,
  { answers, onDefect, make }: { answers: KeptAnswers; onDefect: (error: unknown) => void; make: () => Promise<Reply<RouteName>> },
): Promise<{ reply: Reply<RouteName> } | { again: Response }> {
  const begun = answers.begin(asked);
  if (begun.kind === "again") return { again: await replayed(begun.answer) };
  try {
    const reply = await make();
    // It was done: that its answer could not be kept must not make it look undone.
    noted(() => begun.keep(answerOf(route, reply)), onDefect);
    return { reply };
  } catch (error) {
    const failure = error instanceof CaissonError ? error : null;
    // What may succeed later may be tried again; so may what its caller gave up, of which nothing is left.
    const mayTryAgain = failure !== null && (failure.retryable || failure.code === "cancelled");
    noted(() => (mayTryAgain ? begun.forget() : begun.keep(failureOf(failure))), onDefect);
    throw error;
  }
}

function noted(note: () => void, onDefect: (error: unknown) => void): void {
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

/** A failure of the station's own is one whose outcome nobody knows. */
function failureOf(failure: CaissonError | null): KeptAnswer {
  const told = failure ?? new CaissonError("internal", "the station failed at this");
  return { status: 0, body: JSON.stringify(told.toJSON()), isWhole: true };
}

async function replayed({ status, body, isWhole }: KeptAnswer): Promise<Response> {
  if (!isWhole) {
    throw new CaissonError("conflict", "this was done, and its answer is not kept", {
      hint: "Look at what there is; to do it again, ask with another key.",
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
