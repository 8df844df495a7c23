import type { CreateSandbox } from "../../contract/sandbox-verbs.ts";
import type { HeldSandbox } from "../../station/sandboxes/held-sandbox.ts";
import type { SandboxVerbs } from "../../station/sandboxes/verbs.ts";
import type { Client } from "../connect.ts";
import type { RemoteHold } from "../held-stream.ts";
import { createRemoteSandbox } from "./remote-sandbox.ts";

/** Each handle is a connection to the station, and ends with it: a caller that dies holds nothing any more. */
export function remoteSandboxes(client: Client): { verbs: SandboxVerbs; removeOwn(): Promise<void> } {
  const { sandboxes, streams } = client;
  const own = new Set<HeldSandbox>();
  const holds = new Map<string, RemoteHold>();
  /** Its connection answers what it can: to open another one for that would take longer than the answer. */
  const handleOf = (hold: RemoteHold): HeldSandbox => {
    const { id } = hold.info;
    holds.set(id, hold);
    void hold.closed.then(() => holds.get(id) === hold && holds.delete(id));
    return createRemoteSandbox(client, hold);
  };
  const made = (request: CreateSandbox, sandbox: HeldSandbox): HeldSandbox => {
    if (request.spec.keep) return sandbox;
    own.add(sandbox);
    void sandbox.closed.then(() => own.delete(sandbox));
    return sandbox;
  };
  const verbs: SandboxVerbs = {
    async create({ secretNames, ...request }, { signal, onNotice } = {}) {
      const whole = { ...request, ...(secretNames && { secretNames: [...secretNames] }) };
      return made(request, handleOf(await streams.createHeld(whole, { ...(signal && { signal }), ...(onNotice && { onNotice }) })));
    },
    hold: async (id, { signal } = {}) => handleOf(await streams.holdSandbox(id, signal && { signal })),
    get: (id) => sandboxes.get(id),
    list: (options) => sandboxes.list(options),
    changedFiles: (id) => holds.get(id)?.changedFiles?.() ?? sandboxes.changedFiles(id),
    label: (id, changes) => sandboxes.label(id, changes),
    stats: (id) => sandboxes.stats(id),
    pause: (id) => sandboxes.pause(id),
    resume: (id) => sandboxes.resume(id),
    snapshot: (id, options) => sandboxes.snapshot(id, options),
    fork: (id) => sandboxes.fork(id),
    remove: (id) => sandboxes.remove(id),
    sweep: () => sandboxes.sweep(),
    snapshots: (options) => sandboxes.snapshots(options),
    removeSnapshot: (id) => sandboxes.removeSnapshot(id),
  };
  return {
    verbs,
    async removeOwn() {
      await Promise.all([...own].map((sandbox) => sandbox.destroy()));
    },
  };
}
