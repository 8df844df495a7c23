import type { HealthCondition, HealthEvent } from "../../contract/health-event.ts";
import type { HostView } from "../../sandbox/runtime.ts";
import type { SubjectPlace } from "./health-log.ts";

/** What a restart came to; see `HealthRestartEnded`. */
export interface Restarted {
  outcome: Extract<HealthEvent, { type: "health.restart_ended" }>["data"]["outcome"];
  text: string;
}

/** One that is watched. */
export interface Watched extends SubjectPlace, AsyncDisposable {
  /** Whose it is, and whose what is kept of it will be. */
  owner: string;
  /** Something that is another with each sign of life. Looked at once a tick, and compared with the look before. */
  sign(): unknown;
  /** Called once a tick, for what has to be looked at now and then. */
  attend?(): void;
  /** Asks for a sign. Never throws, and nobody waits for it. */
  prod(): void;
  /** Whether something is going on in it: then silence is noticed sooner. */
  isBusy(): boolean;
  /**
   * Why nothing is to be expected of it now, such as that its user holds it still; null: signs are due. Asked once a
   * tick.
   */
  excuse(): string | null;
  /** What the host sees of it, nobody inside being asked. */
  look(): Promise<HostView>;
  /** Null: whoever it belongs to sees to it by itself. */
  restart: ((about: { condition: HealthCondition; graceMs: number; signal: AbortSignal }) => Promise<Restarted>) | null;
}
