import { ignore } from "../../lib/failures.ts";

/** How long a readiness check stays valid: anyone may ask, as often as they like. */
const READY_MS = 1000;

export interface Health {
  /** Answers `/healthz`: the process responds. */
  alive(): Response;
  /** Answers `/readyz`: whether the station can accept new work. */
  ready(): Promise<Response>;
}

/** Neither needs a token, so both reveal only yes or no. */
export function createHealth({ isReady, isEnding }: { isReady: () => Promise<boolean>; isEnding: () => boolean }): Health {
  let looked: { atMs: number; ready: Promise<boolean> } | undefined;
  const look = () => {
    const now = performance.now();
    if (looked === undefined || now - looked.atMs > READY_MS)
      looked = { atMs: now, ready: ignore(isReady(), "a station whose check fails is not ready").then((ready) => ready ?? false) };
    return looked.ready;
  };
  return {
    alive: () => answer(true),
    ready: async () => answer(!isEnding() && (await look())),
  };
}

function answer(ok: boolean): Response {
  return new Response(ok ? "ok\n" : "not ready\n", {
    status: ok ? 200 : 503,
    headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store", "x-content-type-options": "nosniff" },
  });
}
