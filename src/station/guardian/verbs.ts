import type { GuardianExplanation, GuardianLogEntry, GuardianStatus, ListDecisions } from "../../contract/guardian.ts";

/** What the guardian sees in runs and did about them. */
export interface GuardianVerbs {
  /** The runs that are under way, as the guardian sees them, and what it may do. */
  status(): Promise<GuardianStatus>;
  /** Decisions, the newest first. Throws `not_found` for a run that does not exist. */
  log(options?: ListDecisions): Promise<GuardianLogEntry[]>;
  /** Everything it saw and did in one run, with the evidence. Throws `not_found`, `internal` for a damaged log. */
  explain(run: string): Promise<GuardianExplanation>;
}
