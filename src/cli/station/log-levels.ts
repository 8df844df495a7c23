import type { OptionSpec } from "../command.ts";

export const logLevels = ["error", "warn", "info", "debug", "silent"] as const;

export const logOptions: readonly OptionSpec[] = [
  { name: "log-format", value: "FORMAT", summary: "text (default on a terminal) or json (elsewhere)", choices: ["json", "text"] },
  { name: "log-level", value: "LEVEL", summary: "error, warn, info (default: each request), debug or silent", choices: logLevels },
  { name: "log-file", value: "FILE", summary: "Where the log goes (default stderr; station.log in the state folder with --detach)" },
];
