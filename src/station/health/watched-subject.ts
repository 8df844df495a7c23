import type { HealthCondition, HealthEvent } from "../../contract/health/health-event.ts";
import type { HostView } from "../../sandbox/runtime.ts";
import type { SubjectPlace } from "./health-log.ts";

/** The outcome of a restart; see `HealthRestartEnded`. */
export interface Restarted {
  outcome: Extract<HealthEvent, { type: "health.restart_ended" }>["data"]["outcome"];
  text: string;
}

/** A subject that is watched. */
export interface Watched extends SubjectPlace, AsyncDisposable {
  /** The owner of the subject and of its incidents. */
  owner: string;
  /** Returns a value that changes with each heartbeat. Read once per tick, and compared with the previous value. */
  sign(): unknown;
  /** Called once per tick, for occasional checks. */
  attend?(): void;
  /** Requests a heartbeat. Never throws, and returns at once. */
  prod(): void;
  /** Returns whether something runs in it, so that silence is noticed sooner. */
  isBusy(): boolean;
  /**
   * Returns why no heartbeat is expected now, for example because a user stopped it; null if heartbeats are due. Called
   * once per tick.
   */
  excuse(): string | null;
  /** Returns what the host sees of it, without asking the guest. */
  look(): Promise<HostView>;
  /** Null if this station must not restart it. */
  restart: ((about: { condition: HealthCondition; graceMs: number; signal: AbortSignal }) => Promise<Restarted>) | null;
}
