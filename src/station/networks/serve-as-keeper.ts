import type { SandboxId } from "../../contract/ids.ts";
import { becomeKeeper, keeperOf } from "../../network/sandbox-network/serving.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { Store } from "../../sandbox/store.ts";
import type { ServeEnd } from "./local-networks.ts";

/** Serves a sandbox's network until the signal fires or the sandbox ends, unless another process is its keeper. */
export async function serveAsKeeper(id: SandboxId, options: { runtime: Runtime; store: Store; signal: AbortSignal }): Promise<ServeEnd> {
  const { runtime, store, signal } = options;
  const folder = store.dir(id);
  if (!(await becomeKeeper(folder, store))) return { why: "served", by: keeperOf(folder, store)?.pid ?? null };
  const sandbox = await runtime.open(id, { serveNetwork: true });
  const interrupted = new Promise<ServeEnd>((resolve) => {
    const end = () => resolve({ why: "interrupted" });
    if (signal.aborted) end();
    signal.addEventListener("abort", end, { once: true });
  });
  // There is no handover: a user who interrupts this process wants the network to stop, and the guest notices.
  return Promise.race([sandbox.closed.then((): ServeEnd => ({ why: "gone" })), interrupted]);
}
