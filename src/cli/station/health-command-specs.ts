import type { CommandSpec } from "../command.ts";
import { jsonOption } from "../options/runtime-options.ts";

export const healthCommands: readonly CommandSpec[] = [
  {
    path: ["health"],
    summary: "Which sandboxes, drivers of runs and stations give signs of life",
    details: [
      "late, degraded, unresponsive: one, two, three signs of life in a row are missing. A station restarts what is unresponsive.",
      "Exit code: 0, or 1 when something is unresponsive.",
    ].join("\n"),
    options: [jsonOption],
    arguments: [],
    examples: [["caisson health", ""]],
    load: async () => ({ run: (await import("./health-commands.ts")).health }),
  },
  {
    path: ["incident", "ls"],
    summary: "List what was restarted because it gave no sign of life",
    options: [jsonOption],
    arguments: [],
    examples: [["caisson incident ls", ""]],
    load: async () => ({ run: (await import("./health-commands.ts")).listIncidents }),
  },
  {
    path: ["incident", "show"],
    summary: "Show what was seen of it before it was restarted",
    details: "Its processes and figures as the host saw them, the last events, the end of what its commands wrote.",
    options: [jsonOption],
    arguments: [{ name: "INCIDENT", summary: "see `caisson incident ls`; the beginning of its id is enough" }],
    examples: [["caisson incident show inc_k3v7q2m5x4ab", ""]],
    load: async () => ({ run: (await import("./health-commands.ts")).showIncident }),
  },
];
