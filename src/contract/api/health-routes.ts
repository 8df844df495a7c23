import { z } from "zod";
import { HealthReport, Incident, IncidentView } from "../health.ts";
import type { Route } from "./route.ts";

export const healthRoutes = {
  "health.list": {
    summary: "Which sandboxes, drivers of runs and stations give signs of life, and which do not.",
    scope: "read",
    answer: { json: HealthReport },
  },
  "health.incidents": {
    summary: "List restarts of what gave no sign of life, the newest first.",
    scope: "read",
    answer: { json: z.object({ incidents: z.array(IncidentView) }) },
  },
  "health.incident": {
    summary: "One restart, with what was seen before it: processes, figures, events, output.",
    scope: "read",
    params: { incident: z.string().regex(/^inc_[a-z2-7]{1,12}$/, "an incident's id, or the beginning of it") },
    answer: { json: Incident },
  },
} as const satisfies Record<string, Route>;
