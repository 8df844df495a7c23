import { CaissonError } from "../../contract/error.ts";
import type { ForwardPort, ForwardView, OpenPreview, PreviewView } from "../../contract/network-verbs.ts";
import type { OpenedPort } from "../../station/networks/verbs.ts";
import type { HeldSandbox } from "../../station/sandboxes/held-sandbox.ts";
import type { Station } from "../../station/station.ts";
import type { Client } from "../connect.ts";
import { bodyOf, bytesOf } from "./byte-streams.ts";
import { remoteInside } from "./remote-inside.ts";
import { remoteMerges } from "./remote-merges.ts";
import { remoteNetworks } from "./remote-networks.ts";
import { remoteRuns } from "./remote-runs.ts";
import { remoteSandboxes } from "./remote-sandboxes.ts";
import { remoteSessions } from "./remote-sessions.ts";
import { remoteShips } from "./remote-ships.ts";
import { remoteSpecs } from "./remote-specs.ts";
import { remoteWorkflows } from "./remote-workflows.ts";

/** What a station at the other end of a wire cannot do for its caller: listen on the caller's own machine. */
export interface OpenPorts {
  preview(sandbox: HeldSandbox, request: OpenPreview): Promise<OpenedPort<PreviewView>>;
  forward(sandbox: HeldSandbox, request: ForwardPort & { onRefused?: (error: unknown) => void }): Promise<OpenedPort<ForwardView>>;
}

export interface RemoteStation extends Station {
  /** Lets go of every sandbox that was made through it without `keep`, which ends them. */
  removeOwn(): Promise<void>;
}

/**
 * A station that is reached through a client: the same verbs with the same promises. What lives, such as the handle of
 * a sandbox, lives as long as its connection; what a verb's signal ends here is the waiting, and a run that was started
 * goes on at the station.
 */
export function createRemoteStation(client: Client, { openPorts }: { openPorts: OpenPorts }): RemoteStation {
  const { verbs: sandboxes, removeOwn } = remoteSandboxes(client);
  const { machine, images, agents, tokens, audit, health, guardian, uploads, secrets } = client;
  return {
    runs: remoteRuns(client),
    sessions: remoteSessions(client),
    specs: remoteSpecs(client),
    sandboxes,
    networks: remoteNetworks(client, { openPorts, sandboxes }),
    agents: {
      list: () => agents.list(),
      show: (name, options) => agents.show(name, options && { ...options, ...(options.input && { input: { ...options.input } }) }),
      validate: (path, options) => agents.validate(path, options),
      filesAt: (path, options) => agents.filesAt(path, options),
      judge: (path) => agents.judge(path),
      trust: (path, options) => agents.trust(path, options),
      trusted: () => agents.trusted(),
      revoke: (path) => agents.revoke(path),
    },
    images: {
      build: (request) => images.build(request),
      list: () => images.list(),
      remove: (name) => images.remove(name),
    },
    machine: {
      doctor: (options = {}) =>
        machine.doctor({ ...(options.only && { only: [...options.only] }), ...(options.model !== undefined && { model: options.model }) }),
      choose: (needs) => machine.choose(needs),
      attack: (subject) => machine.attack(subject),
      conformance: (subject) => machine.conformance(subject),
      models: (asked) => machine.models(asked),
      stats: () => machine.stats(),
      usage: () => machine.usage(),
      prune: (request) => machine.prune(request),
      async *backup(options = {}) {
        yield* bytesOf(await machine.backup(options), { what: "reading a backup", signal: undefined });
      },
      async restore() {
        throw new CaissonError("unsupported", "a station that runs uses its state folder", { hint: "End it first: caisson down" });
      },
      find: (word) => machine.find(word),
    },
    tokens: {
      create: (request) => tokens.create(request),
      list: () => tokens.list(),
      rotate: (token, request) => tokens.rotate(token, request),
      revoke: (token) => tokens.revoke(token),
    },
    guardian: {
      status: () => guardian.status(),
      log: (asked) => guardian.log(asked),
      explain: (run) => guardian.explain(run),
    },
    health: {
      list: () => health.list(),
      incidents: () => health.incidents(),
      incident: (id) => health.incident(id),
    },
    uploads: {
      put: (archive, { signal, digest } = {}) =>
        uploads.put(bodyOf(archive), { ...(digest !== undefined && { digest }) }, { ...(signal && { signal }) }),
      list: (options) => uploads.list(options),
      get: (id) => uploads.get(id),
      remove: (id) => uploads.remove(id),
      async sweep() {
        throw new CaissonError("unsupported", "a station sweeps its uploads itself");
      },
    },
    webhooks: remoteWebhooks(client),
    ships: remoteShips(client),
    merges: remoteMerges(client),
    workflows: remoteWorkflows(client),
    inbox: { list: () => client.inbox.list() },
    inside: remoteInside(client),
    // Whose they are is said by the token.
    secrets: {
      set: (name, request) => secrets.set(name, request),
      list: () => secrets.list(),
      remove: (name) => secrets.remove(name),
    },
    audit: { list: (request) => audit.list(request) },
    removeOwn,
    [Symbol.asyncDispose]: removeOwn,
  };
}

function remoteWebhooks({ webhooks }: Pick<Client, "webhooks">): Station["webhooks"] {
  return {
    create: (request) => webhooks.create(request),
    get: (webhook) => webhooks.get(webhook),
    list: () => webhooks.list(),
    remove: (webhook) => webhooks.remove(webhook),
    pause: (webhook) => webhooks.pause(webhook),
    resume: (webhook) => webhooks.resume(webhook),
    deliveries: (webhook, options) => webhooks.deliveries(webhook, options),
    replay: (webhook, options) => webhooks.replay(webhook, options),
    test: (webhook) => webhooks.test(webhook),
  };
}
