import { z } from "zod";
import { GuardianExplanation, GuardianLogEntry, GuardianStatus, ListDecisions } from "../contract/guardian/guardian.ts";
import { type VerbsOf, verb } from "./verb.ts";

/** What the guardian observes in runs, and what it did about them. */
export const guardian = {
  /** Returns the active runs as the guardian sees them, and the actions it may take. */
  status: verb({
    path: "GET /v1/guardian",
    gives: GuardianStatus,
    scope: "read",
    owned: "by hand",
    summary: "Show the progress of active runs as the guardian sees them, and the actions it may take.",
  }),
  /** Lists decisions, newest first. Throws `not_found` for a run that does not exist. */
  log: verb({
    path: "GET /v1/guardian/decisions",
    takes: ListDecisions,
    gives: z.array(GuardianLogEntry),
    key: "decisions",
    scope: "read",
    owned: "by hand",
    summary: "List the guardian's decisions about runs and their effect, newest first.",
  }),
  /**
   * Returns everything it observed and did in one run, with the evidence. Throws `not_found`, `internal` for a damaged
   * log.
   */
  explain: verb({
    path: "GET /v1/guardian/runs/{run}",
    gives: GuardianExplanation,
    scope: "read",
    owned: "run",
    summary: "Explain everything the guardian observed and did in one run, with its evidence.",
  }),
};

export type GuardianVerbs = VerbsOf<typeof guardian>;
