import { z } from "zod";
import { GuardianExplanation, GuardianLogEntry, GuardianStatus, ListDecisions } from "../guardian.ts";
import { NameOrId } from "./name-or-id.ts";
import type { Route } from "./route.ts";

export const guardianRoutes = {
  "guardian.status": {
    summary: "Progress of active runs, as the guardian sees them, and what it may do.",
    scope: "read",
    answer: { json: GuardianStatus },
  },
  "guardian.log": {
    summary: "List what the guardian did about runs, and what came of it, the newest first.",
    scope: "read",
    query: ListDecisions,
    answer: { json: z.object({ decisions: z.array(GuardianLogEntry) }) },
  },
  "guardian.explain": {
    summary: "Everything the guardian saw and did in one run, with its evidence.",
    scope: "read",
    params: { run: NameOrId },
    answer: { json: GuardianExplanation },
  },
} as const satisfies Record<string, Route>;
