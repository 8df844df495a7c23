import { CaissonError } from "../contract/error/error.ts";
import { ignore } from "../lib/failures.ts";
import type { Connection } from "./request.ts";

/** How long a request waits before it checks the station's health, and how long the check may take. */
const SILENCE_MS = 10_000;
/** The same when the caller wants to exit. */
const HURRIED_MS = 2_000;

/**
 * Waits for the station for as long as it is alive. Throws `unavailable` if it accepts connections but no longer
 * answers, or the connection is dead.
 */
export async function whileAlive<Result>(
  to: Connection,
  work: (signal: AbortSignal) => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  const over = new AbortController();
  const dead = Promise.withResolvers<never>();
  void ignore(dead.promise, "awaited in the race below");
  const { silenceMs = SILENCE_MS, leaving } = to;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  const lookAfter = (ms: number) => {
    clearTimeout(timer);
    if (!isOver) timer = setTimeout(() => void look(), ms);
  };
  const look = async () => {
    const answerMs = leaving?.aborted === true ? Math.min(HURRIED_MS, silenceMs) : silenceMs;
    if (await givesSign(to, answerMs)) return lookAfter(silenceMs);
    if (isOver) return;
    dead.reject(notAnswering(to));
    over.abort();
  };
  const hurry = () => lookAfter(0);
  lookAfter(leaving?.aborted === true ? Math.min(HURRIED_MS, silenceMs) : silenceMs);
  leaving?.addEventListener("abort", hurry, { once: true });
  try {
    return await Promise.race([work(signal === undefined ? over.signal : AbortSignal.any([signal, over.signal])), dead.promise]);
  } finally {
    isOver = true;
    clearTimeout(timer);
    leaving?.removeEventListener("abort", hurry);
  }
}

/** Returns whether the station answers its health check at all, whatever the answer is. */
async function givesSign(to: Connection, answerMs: number): Promise<boolean> {
  const asking = to.fetch(`${to.url}/healthz`, { method: "GET", redirect: "manual", signal: AbortSignal.timeout(answerMs) });
  const answered = asking.then(async ({ body }) => {
    await body?.cancel();
    return true;
  });
  return (await ignore(answered, "no answer means that it is not alive")) ?? false;
}

const notAnswering = ({ url }: Connection) =>
  new CaissonError("unavailable", `the station at ${url} does not answer`, {
    hint: "It is too busy, or the connection is dead. The request may have taken effect; try again later.",
    details: { isBroken: false },
  });
