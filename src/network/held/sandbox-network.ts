import type { Transform } from "node:stream";
import { CaissonError } from "../../contract/error.ts";
import type { NetworkEvent } from "../../contract/network-event.ts";
import type { Capabilities, SandboxSpec } from "../../contract/sandbox.ts";
import type { OwnedSandbox, SandboxNetwork } from "../../sandbox/sandbox.ts";
import { refuseNetwork } from "../../sandbox/spec.ts";
import type { Store } from "../../sandbox/store.ts";
import { MIRROR_PORT } from "../inside/ports.ts";
import type { NetworkHost } from "../network-host.ts";
import { addRedactor } from "../redacted-events.ts";
import type { SecretBook } from "../secrets/secret-book.ts";
import { startKeeper } from "./keeper.ts";
import { openNetworkLog } from "./network-log.ts";
import { type NetworkState, networkStateFile } from "./network-state.ts";
import type { ServedNetwork } from "./serve-network.ts";
import { createServingMark, servedBy } from "./serving.ts";
import { isMadeTransparent } from "./transparent-ports.ts";

/** The network of one sandbox as this process holds it, with what only the runtime around it may do. */
export interface HeldNetwork extends SandboxNetwork {
  readonly state: NetworkState;
  /** Redacts values of secrets in output, keeping every length; null while none is known. */
  outputRedactor(): Transform | null;
  /** For every command that is started from now on. */
  env(): Promise<Readonly<Record<string, string>>>;
  /** From now on this process serves it, whenever there is something to serve. */
  serve(): Promise<void>;
  /** Sees to it that somebody serves it: who does so already, a keeper, or this process. */
  ensureServed(): Promise<void>;
  /** Hands it over to a keeper when there is something to serve and nobody else does, and serves it no more. What is still heard of the sandbox is redacted until `close`. */
  release(): Promise<void>;
  close(): Promise<void>;
}

export interface HoldOptions {
  sandbox: OwnedSandbox;
  store: Store;
  host: NetworkHost;
  capabilities: () => Promise<Capabilities>;
  /** What a new sandbox begins with; absent for one that is found again. */
  first?: NetworkState | null;
}

const noNetwork: NetworkState = {
  policy: { mode: "none" },
  secrets: {},
  gateway: null,
  revoked: [],
  changedBy: "",
  placeholders: {},
  authority: null,
};

/** Null for a spec that asks for nothing of a network. */
export function firstState(spec: Pick<SandboxSpec, "network" | "secrets" | "gateway">): NetworkState | null {
  const { network, secrets, gateway } = spec;
  if (network.mode === "none" && Object.keys(secrets).length === 0 && gateway === undefined) return null;
  return { ...noNetwork, policy: network, secrets, gateway: gateway ?? null };
}

/** Throws `invalid` for a secret that cannot be had. */
export async function holdNetwork(options: HoldOptions): Promise<HeldNetwork> {
  const { sandbox, store, host } = options;
  const folder = store.dir(sandbox.id);
  const file = networkStateFile(folder);
  const log = openNetworkLog(folder);
  const listeners = new Set<(event: NetworkEvent) => void>();
  const mark = createServingMark(folder, store);
  let state = options.first ? await begin(options.first) : ((await file.read()) ?? noNetwork);
  let serving = false;
  let served: ServedNetwork | null = null;
  let closed = false;
  let budget: Parameters<SandboxNetwork["limitGateway"]>[0] = () => ({ costUsdLeft: null, tokensLeft: null });
  let variables: { of: NetworkState; env: Promise<Readonly<Record<string, string>>> } | null = null;
  /** Changes are taken over one after another. */
  let turn: Promise<unknown> = Promise.resolve();

  async function begin(first: NetworkState): Promise<NetworkState> {
    const { completeState, writeInside } = await import("./complete-state.ts");
    const complete = await completeState(first, host);
    await writeInside(folder, complete);
    return file.update(() => complete);
  }
  const tell = (event: NetworkEvent) => {
    for (const listener of listeners) listener(event);
    host.onEvent?.(event);
  };
  const emit = (event: NetworkEvent) => {
    log.append(event);
    tell(event);
  };
  const event = (type: "network.changed" | "secret.revoked", data: object) =>
    ({ type, version: 1, at: new Date().toISOString(), data: { sandbox: sandbox.id, ...data } }) as NetworkEvent;

  /** Everybody who holds the sandbox is told of a change; whoever serves it acts on it. */
  const takeOver = async (next: NetworkState) => {
    const before = state;
    state = next;
    const by = next.changedBy;
    if (!sameJson(before.policy, next.policy)) tell(event("network.changed", { policy: next.policy, by }));
    for (const secret of next.revoked.filter((name) => !before.revoked.includes(name))) tell(event("secret.revoked", { secret, by }));
    if (!serving || closed || !needsServing(next)) return;
    if (served === null) await start();
    else await served.apply(next);
  };
  let book: SecretBook | null = null;
  let forgetRedactor = () => {};
  const bookNow = async (): Promise<SecretBook> => {
    if (book !== null) return book;
    const { secretsOf } = await import("./secrets-of.ts");
    const made = secretsOf(state, host, host.warn);
    book ??= made;
    // So that what is shown and stored can be looked through for values from the beginning.
    if (book === made) {
      if (!closed) forgetRedactor = addRedactor(host.redactors, { sandbox: sandbox.id, redactor: made.redactor() });
      await made.load();
    }
    return book;
  };
  const start = async () => {
    const { serveNetwork } = await import("./serve-network.ts");
    served = await serveNetwork({ sandbox, folder, state, book: await bookNow(), host, emit, budget: () => budget() });
    await mark.set();
  };
  const inTurn = <Result>(work: () => Promise<Result>): Promise<Result> => {
    const mine = turn.then(work);
    turn = mine.catch(() => {});
    return mine;
  };
  const change = async (make: (before: NetworkState) => NetworkState): Promise<NetworkState> => {
    const { withAuthority, writeInside } = await import("./complete-state.ts");
    const next = await file.update((before) => withAuthority(make(before ?? noNetwork)));
    await writeInside(folder, next);
    return next;
  };
  /** Not what we wrote ourselves: somebody else may have written since, and that was taken over already. */
  const takeOverNewest = () => inTurn(async () => takeOver((await file.read()) ?? state));
  const keeping = { sandbox: sandbox.id, folder, store, host };
  const watching = file.watch((next) => void inTurn(() => takeOver(next)).catch((error: unknown) => warn(error)));
  const warn = (error: unknown) =>
    process.emitWarning(`the network of ${sandbox.id} could not be changed: ${error instanceof Error ? error.message : String(error)}`);

  /** To a keeper, unless somebody else serves it: another process, or another handle of this one, which hands it over when it ends. */
  const handOver = async () => {
    // First, so that of two who do so at once the later one sees that nobody is left.
    await mark.clear();
    if (servedBy(folder, store) !== null) return;
    try {
      await startKeeper(keeping);
    } catch (error) {
      await mark.set();
      throw error;
    }
  };
  let stopped: Promise<void> | null = null;
  const stop = async () => {
    closed = true;
    watching.close();
    await turn;
    await served?.close();
    await mark.clear().catch(() => {});
  };
  const stopServing = (): Promise<void> => {
    stopped ??= stop();
    return stopped;
  };

  const held: HeldNetwork = {
    get state() {
      return state;
    },
    policy: () => state.policy,
    async change(wanted, { by }) {
      const capabilities = await options.capabilities();
      const { policy } = await change((before) => {
        const next = typeof wanted === "function" ? wanted(before.policy) : wanted;
        refuseNetwork({ network: next, secrets: {}, gateway: undefined }, capabilities);
        if (next.mode !== "none" && next.transparent && !isMadeTransparent(sandbox)) {
          throw new CaissonError("unsupported", `sandbox ${sandbox.id} was not made to carry programs that know nothing of proxies`, {
            hint: "Make a new one with --network transparent.",
          });
        }
        return { ...before, policy: next, changedBy: by };
      });
      log.append(event("network.changed", { policy, by }));
      await takeOverNewest();
      await held.ensureServed();
      return policy;
    },
    async revoke(secret, { by }) {
      if (state.secrets[secret] === undefined) {
        const names = Object.keys(state.secrets).join(", ");
        throw new CaissonError("not_found", `sandbox ${sandbox.id} has no secret ${secret}`, {
          hint: names === "" ? "It has none at all." : `It has: ${names}.`,
        });
      }
      await file.update((before) => {
        const base = before ?? noNetwork;
        return { ...base, revoked: [...new Set([...base.revoked, secret])], changedBy: by };
      });
      log.append(event("secret.revoked", { secret, by }));
      await takeOverNewest();
    },
    async fetch(request) {
      if (served === null) await inTurn(async () => (served === null && !closed ? start() : undefined));
      if (served === null) throw new CaissonError("lost", `sandbox ${sandbox.id} is gone`);
      return served.fetch(request);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    settle: () => served?.settle(),
    limitGateway(left) {
      budget = left;
    },
    redact: (text) => book?.redactor().text(text) ?? text,
    outputRedactor: () => book?.answerRedactor(Object.keys(state.secrets))?.body() ?? null,
    async env() {
      if (!needsServing(state)) return {};
      if (Object.keys(state.secrets).length > 0) await bookNow();
      if (variables?.of !== state) variables = { of: state, env: variablesOf(state) };
      return variables.env;
    },
    async serve() {
      serving = true;
      await inTurn(async () => {
        if (closed) return;
        if (needsServing(state) && served === null) await start();
        // Also while there is nothing to serve: nobody else needs to begin when there is. Not before it is served, for who sees the mark goes on.
        if (sandbox.info.keep) await mark.set();
      });
    },
    async ensureServed() {
      if (!needsServing(state) || served !== null) return;
      if (serving) return held.serve();
      // A sandbox that is not kept lives with whoever made it, and that one serves it.
      if (!sandbox.info.keep || servedBy(folder, store) !== null || (await startKeeper(keeping))) return;
      await held.serve();
    },
    async release() {
      if (!closed && needsServing(state) && served !== null) await handOver();
      await stopServing();
    },
    async close() {
      await stopServing();
      forgetRedactor();
    },
  };
  void sandbox.closed.then(() => held.close());
  return held;
}

function needsServing(state: NetworkState): boolean {
  return state.policy.mode !== "none" || state.gateway !== null || state.authority !== null;
}

async function variablesOf(state: NetworkState): Promise<Readonly<Record<string, string>>> {
  const [{ insideEnv }, { insideSettings }] = await Promise.all([
    import("../inside/inside-env.ts"),
    import("../mirror/inside-settings.ts"),
  ]);
  const { policy, placeholders, secrets, gateway } = state;
  return insideEnv({
    // Also where nothing may be reached any more: who asks the proxy is told so, and how to ask.
    policy: policy.mode === "none" ? { mode: "allow", rules: [], registries: [], transparent: false } : policy,
    placeholders,
    secrets,
    gateway: gateway ?? undefined,
    mirrorEnv: policy.mode === "none" ? {} : insideSettings(policy.registries, `http://127.0.0.1:${MIRROR_PORT}`).env,
  });
}

function sameJson(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
