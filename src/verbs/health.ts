import { z } from "zod";
import { HealthReport, Incident, IncidentView } from "../contract/health/health.ts";
import { type VerbsOf, verb } from "./verb.ts";

const IncidentRef = z.string().regex(/^inc_[a-z2-7]{1,12}$/, "an incident's id or an id prefix");

/** Health checks of sandboxes, run drivers and stations, and the restarts they caused. */
export const health = {
  /**
   * Lists what a station watches: its sandboxes, its run drivers and itself. Without a station, the last known state.
   */
  list: verb({
    path: "GET /v1/health",
    gives: HealthReport,
    scope: "read",
    owned: "by hand",
    summary: "Show the health of sandboxes, run drivers and stations.",
  }),
  /** Lists the latest restarts, newest first. */
  incidents: verb({
    path: "GET /v1/incidents",
    gives: z.array(IncidentView),
    key: "incidents",
    scope: "read",
    owned: "by hand",
    summary: "List restarts of unhealthy sandboxes, drivers and stations, newest first.",
  }),
  /** Looks a restart up by its id or an id prefix. Throws `not_found`, `invalid` for an ambiguous prefix. */
  incident: verb({
    path: "GET /v1/incidents/{incident}",
    params: { incident: IncidentRef },
    gives: Incident,
    scope: "read",
    owned: "by hand",
    summary: "Get one restart, with the processes, metrics, events and output observed before it.",
  }),
};

export type HealthVerbs = VerbsOf<typeof health>;
