import { CaissonError } from "../../contract/error/error.ts";
import { ignore } from "../../lib/failures.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { SandboxNetwork } from "../../sandbox/sandbox-network.ts";
import type { Store } from "../../sandbox/store.ts";
import type { NetworkHost } from "../network-host.ts";
import type { HeldSecrets } from "./held-secrets.ts";
import { startKeeper } from "./keeper.ts";
import type { NetworkRecord } from "./network-record.ts";
import type { NetworkState } from "./network-state.ts";
import type { ServedNetwork } from "./serve-network.ts";
import { createServingMark, servedBy } from "./serving.ts";

interface ServiceOptions {
  sandbox: OwnedSandbox;
  folder: string;
  store: Store;
  host: NetworkHost;
  record: Pick<NetworkRecord, "state" | "emit">;
  secrets: HeldSecrets;
}

export function needsServing(state: NetworkState): boolean {
  return state.policy.mode !== "none" || state.gateway !== null || state.stationAccess || state.authority !== null;
}

/** Decides whether, when and by which process a sandbox's network is served, for one handle of the sandbox. */
export class NetworkService {
  readonly #options: ServiceOptions;
  readonly #mark: ReturnType<typeof createServingMark>;
  #wanted = false;
  #served: ServedNetwork | null = null;
  #stopped: Promise<void> | null = null;
  #budget: Parameters<SandboxNetwork["limitGateway"]>[0] = () => ({ costUsdLeft: null, tokensLeft: null });
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: ServiceOptions) {
    this.#options = options;
    this.#mark = createServingMark(options.folder, options.store);
  }

  /** Runs `work` after all earlier work, so that starts, changes and ends of the service never overlap. */
  inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const mine = this.#turn.then(work);
    this.#turn = ignore(mine, "its caller awaits it; the next turn does not depend on its result");
    return mine;
  }

  /** Applies the current state. Must be called in turn. */
  async apply(): Promise<void> {
    const { state } = this.#options.record;
    if (!this.#wanted || this.#stopped !== null || !needsServing(state)) return;
    if (this.#served === null) await this.#start();
    else await this.#served.apply(state);
  }

  /** Lets this process serve the network whenever there is something to serve. */
  async serve(): Promise<void> {
    this.#wanted = true;
    await this.inTurn(async () => {
      if (this.#stopped !== null) return;
      if (needsServing(this.#options.record.state) && this.#served === null) await this.#start();
      // We set the mark even if there is nothing to serve, so that no other process has to start later. We set it only
      // after the network is served, because a process that sees the mark does not wait.
      if (this.#options.sandbox.info.keep) await this.#mark.set();
    });
  }

  /** Ensures that the network is served: by the process that already does, a keeper, or this process. */
  async ensureServed(): Promise<void> {
    const { sandbox, folder, store, record } = this.#options;
    if (!needsServing(record.state) || this.#served !== null) return;
    // A sandbox that is not kept lives with its creator, which serves it.
    const isElsewhere = async () => !sandbox.info.keep || servedBy(folder, store) !== null || (await this.#startKeeper());
    if (this.#wanted || !(await isElsewhere())) await this.serve();
  }

  async fetch(request: Parameters<SandboxNetwork["fetch"]>[0]): ReturnType<SandboxNetwork["fetch"]> {
    if (this.#served === null) await this.inTurn(async () => (this.#served === null && this.#stopped === null ? this.#start() : undefined));
    if (this.#served === null) throw new CaissonError("lost", `sandbox ${this.#options.sandbox.id} no longer exists`);
    return this.#served.fetch(request);
  }

  settle(): void {
    this.#served?.settle();
  }

  limitGateway(left: Parameters<SandboxNetwork["limitGateway"]>[0]): void {
    this.#budget = left;
  }

  /**
   * Hands the network over to a keeper if there is something to serve and no other server. The other server may be
   * another process, or another handle of this process, which hands the network over when it ends.
   */
  async handOver(): Promise<void> {
    const { folder, store, record } = this.#options;
    if (this.#stopped !== null || !needsServing(record.state) || this.#served === null) return;
    // We clear the mark first: if two handles hand over at the same time, the later one sees that no server remains.
    await this.#mark.clear();
    if (servedBy(folder, store) !== null) return;
    try {
      await this.#startKeeper();
    } catch (error) {
      await this.#mark.set();
      throw error;
    }
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    await this.#turn;
    await this.#served?.close();
    await ignore(this.#mark.clear(), "readers of the mark see that this process ended");
  }

  async #start(): Promise<void> {
    const { sandbox, folder, host, record, secrets } = this.#options;
    const { serveNetwork } = await import("./serve-network.ts");
    const book = await secrets.book();
    this.#served = await serveNetwork({
      sandbox,
      folder,
      state: record.state,
      book,
      host,
      emit: record.emit,
      budget: () => this.#budget(),
    });
    await this.#mark.set();
  }

  #startKeeper(): Promise<boolean> {
    const { sandbox, folder, store, host } = this.#options;
    return startKeeper({ sandbox: sandbox.id, folder, store, host });
  }
}
