import { CaissonError } from "../contract/error.ts";
import type { Connection } from "./request.ts";

/** A request that waits longer asks for the station's health, and gives that as long again. */
const SILENCE_MS = 10_000;
/** The same once somebody wants to leave. */
const HURRIED_MS = 2_000;

/**
 * Waits for something of a station, however long it takes, as long as the station lives: one that accepts connections
 * and answers none is given up, and so is a silent connection. Throws `unavailable` then.
 */
export async function whileAlive<Result>(
  to: Connection,
  work: (signal: AbortSignal) => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  const over = new AbortController();
  const dead = Promise.withResolvers<never>();
  dead.promise.catch(() => {});
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

/** Any answer is one, whatever it says. */
async function givesSign(to: Connection, answerMs: number): Promise<boolean> {
  try {
    const { body } = await to.fetch(`${to.url}/healthz`, { method: "GET", redirect: "manual", signal: AbortSignal.timeout(answerMs) });
    await body?.cancel();
    return true;
  } catch {
    return false;
  }
}

const notAnswering = ({ url }: Connection) =>
  new CaissonError("unavailable", `the station at ${url} does not answer`, {
    hint: "It is too busy, or the connection is dead. What was asked for may have been begun; try again later.",
    details: { isBroken: false },
  });
