import { allowMore, denySome } from "../../contract/change-policy.ts";
import { CaissonError } from "../../contract/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import type { NetworkPolicy } from "../../contract/network.ts";
import type { NetworkChange } from "../../contract/network-verbs.ts";
import { LOCAL_OWNER } from "../../contract/owner.ts";
import { unreachable } from "../../lib/unreachable.ts";
import { networkStateFile } from "../../network/held/network-state.ts";
import { servedBy } from "../../network/held/serving.ts";
import type { RuntimeSet } from "../../sandbox/runtime-set.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { SandboxNetwork } from "../../sandbox/sandbox-network.ts";
import { createStore, type Store } from "../../sandbox/store.ts";
import { findSandbox } from "../names/find-sandbox.ts";
import type { RunVerbs } from "../runs/verbs.ts";
import type { LocalSandboxes } from "../sandboxes/local-sandboxes.ts";
import { createKeptPreviews } from "./kept-previews.ts";
import type { NetworkVerbs } from "./verbs.ts";

export interface LocalNetworksOptions {
  stateDir: string;
  runtimes: RuntimeSet;
  sandboxes: Pick<LocalSandboxes, "hold">;
  runs: Pick<RunVerbs, "get" | "events">;
}

/** How serving a network ended: by the signal, with the sandbox, or before it began, because another process does. */
export type ServeEnd = { why: "interrupted" } | { why: "gone" } | { why: "served"; by: number | null };

/** The networks of this machine's sandboxes. */
export interface LocalNetworks extends NetworkVerbs {
  /** Serves a kept sandbox's network, as its one keeper. */
  serve(id: string, options: { signal: AbortSignal }): Promise<ServeEnd>;
}

export function createLocalNetworks(options: LocalNetworksOptions): LocalNetworks {
  const store = createStore(options);
  const context = { runs: options.runs, store };
  const hold = async (name: string): Promise<OwnedSandbox> => options.sandboxes.hold(await sandboxOf(name, context));
  const withNetwork = async <Result>(name: string, work: (network: SandboxNetwork) => Promise<Result>): Promise<Result> => {
    await using sandbox = await hold(name);
    if (sandbox.network === null) throw new CaissonError("unsupported", `the runtime of ${sandbox.id} has no network of its own`);
    return await work(sandbox.network);
  };
  /** Checked, so that what is not there is `not_found`. */
  const folderOf = async (id: SandboxId): Promise<string> => {
    await store.read(id);
    return store.dir(id);
  };
  const preview: NetworkVerbs["preview"] = async (name, request) => {
    const { openPreview } = await import("./open-ports.ts");
    return openPreview(await hold(name), request);
  };
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
    change: (name, change) => withNetwork(name, (network) => network.change((before) => changed(before, change), { by: byOf(change) })),
    revoke: (name, request) => withNetwork(name, (network) => network.revoke(request.secret, { by: byOf(request) })),
    async *log(name, asked = {}) {
      const { eventsInFolder, networkEventsOf } = await import("./network-events.ts");
      const sandbox = await namedSandbox(name, store);
      if (sandbox !== null) yield* eventsInFolder(await folderOf(sandbox), asked);
      else yield* networkEventsOf(options.runs.events(name, asked));
    },
    async forward(name, request, asked = {}) {
      const { openForward } = await import("./open-ports.ts");
      return openForward(await hold(name), { ...request, ...asked });
    },
    async ports(name) {
      const { onePerPort } = await import("../../network/preview/watch-ports.ts");
      await using sandbox = await hold(name);
      return [...onePerPort(await sandbox.listeners()).values()];
    },
    async *watchPorts(name, asked = {}) {
      const { portEvents } = await import("./port-events.ts");
      await using sandbox = await hold(name);
      yield* portEvents(sandbox, asked.signal);
    },
    async serve(id, { signal }) {
      const { serveAsKeeper } = await import("./serve-as-keeper.ts");
      const sandbox = await sandboxOf(id, context);
      const runtime = await options.runtimes.get((await store.read(sandbox)).runtime);
      return serveAsKeeper(sandbox, { runtime, store, signal });
    },
  };
}

const byOf = ({ by = "user" }: { by?: string | undefined }) => by;

function changed(before: NetworkPolicy, { how, policy }: NetworkChange): NetworkPolicy {
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
 * The sandbox of a run that lives, or the one that was named. Throws `not_found`, and `conflict` for a run without one.
 */
async function sandboxOf(name: string, { runs, store }: Pick<LocalNetworksOptions, "runs"> & { store: Store }): Promise<SandboxId> {
  const named = await namedSandbox(name, store);
  if (named !== null) return named;
  const { finish, sandbox } = await runs.get(name);
  if (finish === null && sandbox !== null) return sandbox.id;
  const what = finish !== null ? "has ended, and its sandbox with it" : "has no sandbox yet";
  throw new CaissonError("conflict", `the run ${name} ${what}`, { hint: `\`caisson logs ${name}\` shows what it did.` });
}

/** Null for what may be a run. */
async function namedSandbox(name: string, store: Store): Promise<SandboxId | null> {
  if (name.startsWith("run_")) return null;
  try {
    return await findSandbox(name, store);
  } catch (error) {
    if (error instanceof CaissonError && error.code === "not_found") return null;
    throw error;
  }
}
