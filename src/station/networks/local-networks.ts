import { CaissonError } from "../../contract/error/error.ts";
import { foundOrNull } from "../../contract/error/found-or-null.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import type { SandboxId } from "../../contract/ids.ts";
import { allowMore, denySome } from "../../contract/network/change-policy.ts";
import type { NetworkPolicy } from "../../contract/network/network.ts";
import { NetworkChange } from "../../contract/network/network-verbs.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { unreachable } from "../../lib/unreachable.ts";
import { onePerPort } from "../../network/preview/watch-ports.ts";
import { networkStateFile } from "../../network/sandbox-network/network-state.ts";
import { servedBy } from "../../network/sandbox-network/serving.ts";
import type { RuntimeSet } from "../../sandbox/runtime-set.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { SandboxNetwork } from "../../sandbox/sandbox-network.ts";
import { createStore, type Store } from "../../sandbox/store.ts";
import type { NetworkVerbs } from "../../verbs/networks.ts";
import type { RunVerbs } from "../../verbs/runs.ts";
import { findSandbox } from "../names/find-sandbox.ts";
import type { LocalSandboxes } from "../sandboxes/local-sandboxes.ts";
import { createKeptPreviews } from "./kept-previews.ts";
import { eventsInFolder, networkEventsOf } from "./network-events.ts";
import { openForward, openPreview } from "./open-ports.ts";
import { portEvents } from "./port-events.ts";
import { serveAsKeeper } from "./serve-as-keeper.ts";

export interface LocalNetworksOptions {
  stateDir: string;
  runtimes: RuntimeSet;
  sandboxes: Pick<LocalSandboxes, "hold">;
  runs: Pick<RunVerbs, "get" | "events">;
}

/** Why serving a network ended: the signal, the end of the sandbox, or another process that already serves it. */
export type ServeEnd = { why: "interrupted" } | { why: "gone" } | { why: "served"; by: number | null };

/** The networks of this machine's sandboxes. */
export interface LocalNetworks extends NetworkVerbs {
  /** Serves a kept sandbox's network as its only keeper. */
  serve(id: string, options: { signal: AbortSignal }): Promise<ServeEnd>;
}

export function createLocalNetworks(options: LocalNetworksOptions): LocalNetworks {
  const store = createStore(options);
  const context = { runs: options.runs, store };
  const hold = async (name: string): Promise<OwnedSandbox> => options.sandboxes.hold(await sandboxOf(name, context));
  const withNetwork = async <Result>(name: string, work: (network: SandboxNetwork) => Promise<Result>): Promise<Result> => {
    await using sandbox = await hold(name);
    if (sandbox.network === null) throw new CaissonError("unsupported", `the runtime of ${sandbox.id} has no network`);
    return await work(sandbox.network);
  };
  /** Reads the record to throw `not_found` for a sandbox that does not exist. */
  const folderOf = async (id: SandboxId): Promise<string> => {
    await store.read(id);
    return store.dir(id);
  };
  const preview: NetworkVerbs["preview"] = async (name, request) => openPreview(await hold(name), request);
  return {
    ...createKeptPreviews(preview, async (name) => (await store.read(await sandboxOf(name, context))).spec.owner ?? LOCAL_OWNER),
    preview,
    async show(name) {
      const sandbox = await sandboxOf(name, context);
      const folder = await folderOf(sandbox);
      const state = await networkStateFile(folder).read();
      const secrets = Object.entries(state?.secrets ?? {}).map(([secret, { hosts }]) => ({
        name: secret,
        hosts,
        revoked: state?.revoked.includes(secret) ?? false,
      }));
      const policy: NetworkPolicy = state?.policy ?? { mode: "none" };
      return { sandbox, policy, secrets, gateway: state?.gateway ?? null, servedBy: servedBy(folder, store) };
    },
    async change(name, request) {
      const change = parseRequest(NetworkChange, request, "a network change");
      return await withNetwork(name, (network) => network.change((before) => changePolicy(before, change), change));
    },
    revoke: (name, request) => withNetwork(name, (network) => network.revoke(request.secret, { by: byOf(request) })),
    async *log(name, logOptions = {}) {
      const sandbox = await namedSandbox(name, store);
      if (sandbox !== null) yield* eventsInFolder(await folderOf(sandbox), logOptions);
      else yield* networkEventsOf(options.runs.events(name, logOptions));
    },
    forward: async (name, request, forwardOptions = {}) => openForward(await hold(name), { ...request, ...forwardOptions }),
    async ports(name) {
      await using sandbox = await hold(name);
      return [...onePerPort(await sandbox.listeners()).values()];
    },
    async *watchPorts(name, watchOptions = {}) {
      await using sandbox = await hold(name);
      yield* portEvents(sandbox, watchOptions.signal);
    },
    async serve(id, { signal }) {
      const sandbox = await sandboxOf(id, context);
      const runtime = await options.runtimes.get((await store.read(sandbox)).runtime);
      return serveAsKeeper(sandbox, { runtime, store, signal });
    },
  };
}

const byOf = ({ by = "user" }: { by?: string | undefined }) => by;

function changePolicy(before: NetworkPolicy, { how, policy }: NetworkChange): NetworkPolicy {
  switch (how) {
    case "allow":
      return allowMore(before, policy);
    case "deny":
      return denySome(before, policy);
    case "set":
      return policy;
    default:
      return unreachable(how);
  }
}

/**
 * Returns the named sandbox, or the sandbox of the named run if the run is open. Throws `not_found`, and `conflict` for
 * a run without a sandbox.
 */
async function sandboxOf(name: string, { runs, store }: Pick<LocalNetworksOptions, "runs"> & { store: Store }): Promise<SandboxId> {
  const named = await namedSandbox(name, store);
  if (named !== null) return named;
  const { finish, sandbox } = await runs.get(name);
  if (finish === null && sandbox !== null) return sandbox.id;
  const what = finish !== null ? "has ended, and its sandbox with it" : "has no sandbox yet";
  throw new CaissonError("conflict", `the run ${name} ${what}`, { hint: `\`caisson logs ${name}\` shows what it did.` });
}

/** Returns null for a word that may name a run. */
async function namedSandbox(name: string, store: Store): Promise<SandboxId | null> {
  return name.startsWith("run_") ? null : await foundOrNull(findSandbox(name, store));
}
