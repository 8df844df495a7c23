import { z } from "zod";

/** By how many signs of life in a row are missing: none, one, two, three or more. */
export const HealthLevel = z.enum(["ok", "late", "degraded", "unresponsive"]);
export type HealthLevel = z.infer<typeof HealthLevel>;
