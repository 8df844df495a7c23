/** How long a look at the disk is good for: anybody may ask, and as often as they like. */
const READY_MS = 1000;

export interface Health {
  /** For `/healthz`: the process answers. */
  alive(): Response;
  /** For `/readyz`: whether new work can be taken. */
  ready(): Promise<Response>;
}

/** Neither needs a token, and neither says more than yes or no. */
export function createHealth({ isReady, isEnding }: { isReady: () => Promise<boolean>; isEnding: () => boolean }): Health {
  let looked: { atMs: number; ready: Promise<boolean> } | undefined;
  const look = () => {
    const now = performance.now();
    if (looked === undefined || now - looked.atMs > READY_MS) looked = { atMs: now, ready: isReady().catch(() => false) };
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
