import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import type { Store } from "../../sandbox/store.ts";
import type { NetworkHost } from "../network-host.ts";
import { keeperOf } from "./serving.ts";

/** How long a keeper may take to start serving. */
const START_MS = 15_000;
const POLL_MS = 20;
/** A keeper may die while it starts, or leave because another one is about to die. */
const STARTS_MAX = 3;

/**
 * Ensures that a process keeps a sandbox's network, and waits until it serves. If several keepers start at the same
 * time, one of them remains. Returns false if this host cannot start keepers. Throws `timeout`, and the errors of
 * starting a process.
 */
export async function startKeeper(options: { sandbox: SandboxId; folder: string; store: Store; host: NetworkHost }): Promise<boolean> {
  const { sandbox, folder, store, host } = options;
  if (host.startKeeper === undefined) return false;
  const deadline = performance.now() + START_MS;
  let starts = 0;
  let started = false;
  for (;;) {
    const keeper = keeperOf(folder, store);
    if (keeper?.serves) return true;
    if (keeper !== null) started = false;
    else if (!started && starts < STARTS_MAX) {
      await host.startKeeper(sandbox);
      started = true;
      starts += 1;
    }
    if (performance.now() > deadline) {
      throw new CaissonError("timeout", `no process started to serve the network of ${sandbox}`, {
        hint: "Check background.log in the state folder.",
      });
    }
    await delay(POLL_MS);
  }
}
