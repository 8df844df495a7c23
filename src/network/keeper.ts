import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../contract/error.ts";
import type { SandboxId } from "../contract/ids.ts";
import type { Store } from "../sandbox/store.ts";
import type { NetworkHost } from "./network-host.ts";
import { servedBy } from "./serving.ts";

/** How long a keeper may take to begin. */
const START_MS = 15_000;
const POLL_MS = 20;

/** Starts a process that serves a kept sandbox's network, and waits until it does. False where there is none to be had. Throws `timeout`. */
export async function startKeeper(options: { sandbox: SandboxId; folder: string; store: Store; host: NetworkHost }): Promise<boolean> {
  const { sandbox, folder, store, host } = options;
  if (host.startKeeper === undefined) return false;
  await host.startKeeper(sandbox);
  const deadline = performance.now() + START_MS;
  const self = store.ownerOf().pid;
  for (;;) {
    const pid = servedBy(folder, store);
    if (pid !== null && pid !== self) return true;
    if (performance.now() > deadline) {
      throw new CaissonError("timeout", `nothing began to serve the network of ${sandbox}`, {
        hint: "Look at background.log in the state folder.",
      });
    }
    await delay(POLL_MS);
  }
}
