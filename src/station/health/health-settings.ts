import type { Config } from "../../contract/config.ts";

/** How long silence may last, and what is done about it. */
export type HealthSettings = Config["health"];

/** So many signs of life in a row are missing before something is restarted. */
export const MISSES_MAX = 3;
export const HOUR_MS = 3_600_000;
