import type { OptionDefinition } from "../command.ts";

export const logLevels = ["error", "warn", "info", "debug", "silent"] as const;

export const logOptions: readonly OptionDefinition[] = [
  {
    name: "log-format",
    value: "FORMAT",
    summary: "Log format: text (default on a terminal) or json (elsewhere)",
    choices: ["json", "text"],
  },
  {
    name: "log-level",
    value: "LEVEL",
    summary: "Log level: error, warn, info (default: each request), debug or silent",
    choices: logLevels,
  },
  { name: "log-file", value: "FILE", summary: "Log to this file (default: stderr, or station.log in the state folder with --detach)" },
];
