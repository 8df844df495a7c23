import type { Config } from "../../contract/config/config.ts";

/** How long silence may last, and what to do about it. */
export type HealthSettings = Config["health"];

/** How many missed heartbeats in a row lead to a restart. */
export const MISSES_MAX = 3;
export const HOUR_MS = 3_600_000;
