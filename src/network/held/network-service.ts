import { CaissonError } from "../../contract/error.ts";
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

/** Whether, when and by whom a sandbox's network is served, as one handle of the sandbox sees to it. */
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

  /** What begins, changes or ends the service happens one after another. */
  inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const mine = this.#turn.then(work);
    this.#turn = mine.catch(() => {});
    return mine;
  }

  /** Acts on the state that holds now; to be called in turn. */
  async apply(): Promise<void> {
    const { state } = this.#options.record;
    if (!this.#wanted || this.#stopped !== null || !needsServing(state)) return;
    if (this.#served === null) await this.#start();
    else await this.#served.apply(state);
  }

  /** From now on this process serves it, whenever there is something to serve. */
  async serve(): Promise<void> {
    this.#wanted = true;
    await this.inTurn(async () => {
      if (this.#stopped !== null) return;
      if (needsServing(this.#options.record.state) && this.#served === null) await this.#start();
      // Also while there is nothing to serve: nobody else needs to begin when there is. Not before it is served, for
      // who sees the mark goes on.
      if (this.#options.sandbox.info.keep) await this.#mark.set();
    });
  }

  /** Sees to it that somebody serves it: who does so already, a keeper, or this process. */
  async ensureServed(): Promise<void> {
    const { sandbox, folder, store, record } = this.#options;
    if (!needsServing(record.state) || this.#served !== null) return;
    // A sandbox that is not kept lives with whoever made it, and that one serves it.
    const isElsewhere = async () => !sandbox.info.keep || servedBy(folder, store) !== null || (await this.#startKeeper());
    if (this.#wanted || !(await isElsewhere())) await this.serve();
  }

  async fetch(request: Parameters<SandboxNetwork["fetch"]>[0]): ReturnType<SandboxNetwork["fetch"]> {
    if (this.#served === null) await this.inTurn(async () => (this.#served === null && this.#stopped === null ? this.#start() : undefined));
    if (this.#served === null) throw new CaissonError("lost", `sandbox ${this.#options.sandbox.id} is gone`);
    return this.#served.fetch(request);
  }

  settle(): void {
    this.#served?.settle();
  }

  limitGateway(left: Parameters<SandboxNetwork["limitGateway"]>[0]): void {
    this.#budget = left;
  }

  /**
   * To a keeper, when there is something to serve and nobody else does: another process, or another handle of this one,
   * which hands it over when it ends.
   */
  async handOver(): Promise<void> {
    const { folder, store, record } = this.#options;
    if (this.#stopped !== null || !needsServing(record.state) || this.#served === null) return;
    // First, so that of two who do so at once the later one sees that nobody is left.
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
    await this.#mark.clear().catch(() => {});
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
