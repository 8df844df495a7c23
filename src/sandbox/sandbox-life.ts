import { CaissonError } from "../contract/error/error.ts";
import type { SandboxConfig, SandboxInfo, SandboxState } from "../contract/sandbox/sandbox.ts";
import { SandboxEnded, type SandboxEvent, SandboxPaused, SandboxResumed, SandboxSnapshotted } from "../contract/sandbox/sandbox-event.ts";
import type { GuestConnection } from "./guest/connection.ts";
import type { OwnedSandbox, PauseOptions, SnapshotOptions } from "./sandbox.ts";
import { emitTo } from "./sandbox-events.ts";
import type { Wall } from "./wall.ts";

interface LifeOptions {
  info: SandboxInfo;
  config: SandboxConfig;
  connection: Pick<GuestConnection, "closed" | "isClosed" | "close">;
  wall: Wall;
  onEvent?: ((event: SandboxEvent) => void) | undefined;
}

/** The lifecycle of a sandbox, from a new handle to its end, and what each state allows. */
export class SandboxLife {
  readonly closed: Promise<{ why: "destroyed" | "lost" }>;
  readonly #options: LifeOptions;
  readonly #close: (why: { why: "destroyed" | "lost" }) => void;
  #state: SandboxState;
  #destroying: Promise<void> | null = null;
  #released = false;
  /** While its processes are moved to the disk. */
  #isLeaving = false;

  constructor(options: LifeOptions) {
    const { promise, resolve } = Promise.withResolvers<{ why: "destroyed" | "lost" }>();
    this.closed = promise;
    this.#close = resolve;
    this.#options = options;
    this.#state = options.info.state;
    void options.connection.closed.then(() => {
      if (this.#destroying !== null || this.#released || this.#isLeaving) return;
      this.#state = "failed";
      this.emit(SandboxEnded.make({ sandbox: options.info.id, why: "lost" }));
      resolve({ why: "lost" });
    });
  }

  get info(): SandboxInfo {
    return { ...this.#options.info, state: this.#state };
  }

  emit(event: SandboxEvent): void {
    emitTo(this.#options.onEvent, event);
  }

  /** Throws `conflict` while it is paused, `lost` if the guest's connection is closed. */
  checkReady(): void {
    const { id } = this.#options.info;
    if (this.#state === "paused") throw new CaissonError("conflict", `sandbox ${id} is paused`, { hint: "Resume it first." });
    if (this.#options.connection.isClosed) throw sandboxGone(id);
    this.checkThere();
  }

  /** Throws `lost` if it is being destroyed. The wall outlives the guest. */
  checkThere(): void {
    if (this.#destroying !== null) throw sandboxGone(this.#options.info.id);
  }

  /** The lifecycle calls of its owner. */
  calls(): Pick<OwnedSandbox, "pause" | "resume" | "snapshot" | "fork" | "release" | "detach" | "destroy" | typeof Symbol.asyncDispose> {
    return {
      pause: (options) => this.#pause(options),
      resume: () => this.#resume(),
      snapshot: (options) => this.#snapshot(options),
      fork: async (options = {}) => {
        this.checkThere();
        return this.#options.wall.fork(options);
      },
      release: () => this.#release(),
      detach: async () => this.#disconnect(),
      destroy: () => this.#destroyOnce(),
      [Symbol.asyncDispose]: async () => {
        if (this.#released) return;
        if (this.#options.config.keep && this.#destroying === null) await this.#release();
        else await this.#destroyOnce();
      },
    };
  }

  async #pause({ toDisk = false }: PauseOptions = {}): Promise<void> {
    const { info, wall } = this.#options;
    if (this.#state === "paused" && !toDisk) return;
    this.checkReady();
    this.#isLeaving = toDisk;
    try {
      await wall.pause({ toDisk });
    } finally {
      this.#isLeaving = false;
    }
    this.#state = "paused";
    // The guest has ended; a later handle reaches the restored one.
    if (toDisk) {
      this.#disconnect();
      this.#close({ why: "lost" });
    }
    this.emit(SandboxPaused.make({ sandbox: info.id }));
  }

  async #resume(): Promise<void> {
    const { info, wall } = this.#options;
    if (this.#state !== "paused") this.checkReady();
    // Regardless of the last known state: another process may have frozen it since, and died.
    await wall.resume();
    if (this.#state !== "paused") return;
    this.#state = "running";
    this.emit(SandboxResumed.make({ sandbox: info.id }));
  }

  async #snapshot(options: SnapshotOptions = {}): ReturnType<Wall["snapshot"]> {
    const { info, wall } = this.#options;
    this.checkThere();
    const snapshot = await wall.snapshot(options);
    this.emit(SandboxSnapshotted.make({ sandbox: info.id, snapshot }));
    return snapshot;
  }

  async #release(): Promise<void> {
    const { info, config, wall } = this.#options;
    if (!config.keep) {
      throw new CaissonError("invalid", `sandbox ${info.id} was not created with keep`, { hint: "Create it with keep: true (--keep)." });
    }
    this.checkThere();
    await wall.release();
    this.#disconnect();
  }

  #disconnect(): void {
    this.#released = true;
    this.#options.connection.close();
  }

  #destroyOnce(): Promise<void> {
    this.#destroying ??= this.#destroy();
    return this.#destroying;
  }

  async #destroy(): Promise<void> {
    const { info, wall, connection } = this.#options;
    this.#state = "completing";
    try {
      await wall.destroy();
    } catch (error) {
      // Allows another attempt.
      this.#destroying = null;
      throw error;
    }
    connection.close();
    this.#state = "completed";
    this.emit(SandboxEnded.make({ sandbox: info.id, why: "destroyed" }));
    this.#close({ why: "destroyed" });
  }
}

function sandboxGone(id: string): CaissonError {
  return new CaissonError("lost", `sandbox ${id} no longer exists`);
}
