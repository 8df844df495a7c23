import type { NetworkPolicy } from "../../contract/network/network.ts";
import { NetworkChanged, type NetworkEvent, SecretRevoked } from "../../contract/network/network-event.ts";
import type { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { NetworkHost } from "../network-host.ts";
import { openNetworkLog } from "./network-log.ts";
import { type NetworkState, networkStateFile } from "./network-state.ts";

/** The state of a sandbox's network as this process knows it, its events, and the listeners of both. */
export interface NetworkRecord {
  readonly state: NetworkState;
  subscribe(listener: (event: NetworkEvent) => void): () => void;
  /** Stores an event and passes it to the listeners. */
  emit(event: NetworkEvent): void;
  /** Writes another policy for all processes. It takes effect here with `takeOver`. Throws what `make` throws. */
  setPolicy(make: (before: NetworkPolicy) => NetworkPolicy, options: { by: string }): Promise<NetworkPolicy>;
  /** Writes that a secret is revoked. This takes effect with `takeOver` too. */
  revoke(secret: string, options: { by: string }): Promise<void>;
  /** Reads the stored state. */
  newest(): Promise<NetworkState>;
  /** Makes this state take effect here, and tells the listeners what has changed. */
  takeOver(next: NetworkState): void;
  /** Calls `onState` with each state that any process writes, until closed. */
  watch(onState: (state: NetworkState) => void): { close(): void };
}

const noNetwork: NetworkState = {
  policy: { mode: "none" },
  secrets: {},
  gateway: null,
  stationAccess: false,
  revoked: [],
  changedBy: "",
  placeholders: {},
  authority: null,
};

/** Returns null for a configuration that requests nothing from a network. */
export function firstState(config: Pick<SandboxConfig, "network" | "secrets" | "gateway" | "stationAccess">): NetworkState | null {
  const { network, secrets, gateway, stationAccess } = config;
  if (network.mode === "none" && Object.keys(secrets).length === 0 && gateway === undefined && !stationAccess) return null;
  return { ...noNetwork, policy: network, secrets, gateway: gateway ?? null, stationAccess };
}

interface RecordOptions {
  sandbox: OwnedSandbox;
  folder: string;
  host: NetworkHost;
  /** The initial state of a new sandbox. Absent for one that is reopened. */
  first?: NetworkState | null | undefined;
}

/** Throws `invalid` for a secret that is not available. */
export async function openNetworkRecord({ sandbox, folder, host, first }: RecordOptions): Promise<NetworkRecord> {
  const file = networkStateFile(folder);
  const log = openNetworkLog(folder);
  const listeners = new Set<(event: NetworkEvent) => void>();
  const begin = async (wanted: NetworkState) => {
    const { completeState, writeInside } = await import("./complete-state.ts");
    const complete = await completeState(wanted, host);
    await writeInside(folder, complete);
    return file.update(() => complete);
  };
  let state = first ? await begin(first) : ((await file.read()) ?? noNetwork);
  const tell = (event: NetworkEvent) => {
    for (const listener of listeners) listener(event);
    host.onEvent?.(event);
  };
  return {
    get state() {
      return state;
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    emit(each) {
      log.append(each);
      tell(each);
    },
    async setPolicy(make, { by }) {
      const { withAuthority, writeInside } = await import("./complete-state.ts");
      const next = await file.update((before) => {
        const base = before ?? noNetwork;
        return withAuthority({ ...base, policy: make(base.policy), changedBy: by });
      });
      await writeInside(folder, next);
      log.append(NetworkChanged.make({ sandbox: sandbox.id, policy: next.policy, by }));
      return next.policy;
    },
    async revoke(secret, { by }) {
      await file.update((before) => {
        const base = before ?? noNetwork;
        return { ...base, revoked: [...new Set([...base.revoked, secret])], changedBy: by };
      });
      log.append(SecretRevoked.make({ sandbox: sandbox.id, secret, by }));
    },
    newest: async () => (await file.read()) ?? state,
    takeOver(next) {
      const before = state;
      state = next;
      const by = next.changedBy;
      if (!sameJson(before.policy, next.policy)) tell(NetworkChanged.make({ sandbox: sandbox.id, policy: next.policy, by }));
      for (const secret of next.revoked.filter((name) => !before.revoked.includes(name)))
        tell(SecretRevoked.make({ sandbox: sandbox.id, secret, by }));
    },
    watch: (onState) => file.watch(onState),
  };
}

function sameJson(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
