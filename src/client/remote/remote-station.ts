import { CaissonError } from "../../contract/error/error.ts";
import type { ForwardPort, ForwardView, OpenPreview, PreviewView } from "../../contract/network/network-verbs.ts";
import type { HeldSandbox } from "../../verbs/held-sandbox.ts";
import type { OpenedPort } from "../../verbs/networks.ts";
import type { Station } from "../../verbs/station.ts";
import type { Client } from "../connect.ts";
import { bodyOf, bytesOf } from "./byte-streams.ts";
import { derivedVerbs } from "./derived-verbs.ts";
import { remoteBests, remoteMerges, remoteWorkflows } from "./remote-jobs.ts";
import { remoteNetworks } from "./remote-networks.ts";
import { remoteRuns } from "./remote-runs.ts";
import { remoteSandboxes } from "./remote-sandboxes.ts";
import { remoteSessions } from "./remote-sessions.ts";

/** What a remote station cannot do: listen on the caller's machine. */
export interface OpenPorts {
  preview(sandbox: HeldSandbox, request: OpenPreview): Promise<OpenedPort<PreviewView>>;
  forward(sandbox: HeldSandbox, request: ForwardPort & { onRefused?: (error: unknown) => void }): Promise<OpenedPort<ForwardView>>;
}

export interface RemoteStation extends Station {
  /** Releases every sandbox that was created here without `keep`, which removes them. */
  removeOwn(): Promise<void>;
}

/**
 * Adapts a client to a station: the same verbs with the same guarantees. Live objects, such as a sandbox handle, last
 * as long as their connection. A verb's signal only ends the wait; a started run continues on the station.
 */
export function createRemoteStation(client: Client, { openPorts }: { openPorts: OpenPorts }): RemoteStation {
  const { verbs: sandboxes, removeOwn } = remoteSandboxes(client);
  const { uploads, inside } = client;
  return {
    runs: remoteRuns(client),
    sessions: remoteSessions(client),
    sandboxes,
    networks: remoteNetworks(client, { openPorts, sandboxes }),
    merges: remoteMerges(client),
    bests: remoteBests(client),
    workflows: remoteWorkflows(client),
    specs: derivedVerbs("specs", client.specs),
    ships: derivedVerbs("ships", client.ships),
    agents: derivedVerbs("agents", client.agents),
    images: derivedVerbs("images", client.images),
    templates: derivedVerbs("templates", client.templates),
    tokens: derivedVerbs("tokens", client.tokens),
    guardian: derivedVerbs("guardian", client.guardian),
    health: derivedVerbs("health", client.health),
    inbox: derivedVerbs("inbox", client.inbox),
    secrets: derivedVerbs("secrets", client.secrets),
    audit: derivedVerbs("audit", client.audit),
    machine: {
      ...derivedVerbs("machine", client.machine),
      async restore() {
        throw new CaissonError("unsupported", "the state folder is in use by the running station", { hint: "Stop it first: caisson down" });
      },
    },
    uploads: {
      ...derivedVerbs("uploads", uploads),
      put: (archive, { signal, digest } = {}) =>
        uploads.put(bodyOf(archive), { ...(digest !== undefined && { digest }) }, { ...(signal && { signal }) }),
      list: ({ owner: _, ...options } = {}) => uploads.list(options),
      async sweep() {
        throw new CaissonError("unsupported", "the station sweeps its own uploads");
      },
    },
    webhooks: { ...derivedVerbs("webhooks", client.webhooks), create: (request) => client.webhooks.create(request) },
    inside: {
      ...derivedVerbs("inside", inside),
      report: refuseOutside,
      takeMessages: refuseOutside,
      beat: refuseOutside,
      putArtifact: refuseOutside,
      events: (sandbox, { owner: _, ...options } = {}) => inside.events(sandbox, options),
      follow: (sandbox, { owner: _, ...options } = {}) => inside.follow(sandbox, options),
      readArtifact: async (thing, name) => bytesOf(await inside.readArtifact(thing, name), { what: "reading", signal: undefined }),
    },
    removeOwn,
    [Symbol.asyncDispose]: removeOwn,
  };
}

/** Only programs in a sandbox can make these calls, with the token that identifies the sandbox. */
async function refuseOutside(): Promise<never> {
  throw new CaissonError("denied", "only programs in a sandbox may do this, with its own token");
}
