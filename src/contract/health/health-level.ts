import { z } from "zod";

/** By the number of consecutive missed heartbeats: none, one, two, three or more. */
export const HealthLevel = z.enum(["ok", "late", "degraded", "unresponsive"]);
export type HealthLevel = z.infer<typeof HealthLevel>;
