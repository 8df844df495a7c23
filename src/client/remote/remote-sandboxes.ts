import type { CreateSandbox } from "../../contract/sandbox/sandbox-verbs.ts";
import type { HeldSandbox } from "../../verbs/held-sandbox.ts";
import type { SandboxVerbs } from "../../verbs/sandboxes.ts";
import type { Client } from "../connect.ts";
import type { RemoteHold } from "../held-stream.ts";
import { derivedVerbs } from "./derived-verbs.ts";
import { createRemoteSandbox } from "./remote-sandbox.ts";

/** The sandboxes of a remote station. Each handle is a connection, so a caller that dies releases its sandboxes. */
export function remoteSandboxes(client: Client): { verbs: SandboxVerbs; removeOwn(): Promise<void> } {
  const { sandboxes, streams } = client;
  const own = new Set<HeldSandbox>();
  const holds = new Map<string, RemoteHold>();
  /** Uses the handle's own connection where possible: opening another one would take longer than the answer. */
  const handleOf = (hold: RemoteHold): HeldSandbox => {
    const { id } = hold.info;
    holds.set(id, hold);
    void hold.closed.then(() => holds.get(id) === hold && holds.delete(id));
    return createRemoteSandbox(client, hold);
  };
  const trackOwn = (request: CreateSandbox, sandbox: HeldSandbox): HeldSandbox => {
    if (request.spec.keep) return sandbox;
    own.add(sandbox);
    void sandbox.closed.then(() => own.delete(sandbox));
    return sandbox;
  };
  const verbs: SandboxVerbs = {
    ...derivedVerbs("sandboxes", sandboxes),
    async create({ secretNames, ...request }, { signal, onNotice } = {}) {
      const whole = { ...request, ...(secretNames && { secretNames: [...secretNames] }) };
      return trackOwn(request, handleOf(await streams.createHeld(whole, { ...(signal && { signal }), ...(onNotice && { onNotice }) })));
    },
    hold: async (id, { signal } = {}) => handleOf(await streams.holdSandbox(id, signal && { signal })),
    changedFiles: (id) => holds.get(id)?.changedFiles?.() ?? sandboxes.changedFiles(id),
  };
  return {
    verbs,
    async removeOwn() {
      await Promise.all([...own].map((sandbox) => sandbox.destroy()));
    },
  };
}
