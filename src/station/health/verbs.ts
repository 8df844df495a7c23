import type { HealthReport, Incident, IncidentView } from "../../contract/health.ts";

/** Whether what is there still shows signs of life, and what was done about what did not. */
export interface HealthVerbs {
  /**
   * What a station looks after: its sandboxes, what drives runs, and itself. Without a station, those that were sick
   * when one looked last.
   */
  list(): Promise<HealthReport>;
  /** The last ones, the newest first. */
  incidents(): Promise<IncidentView[]>;
  /** By its id or the beginning of it. Throws `not_found`, `invalid` for what stands for several. */
  incident(id: string): Promise<Incident>;
}
