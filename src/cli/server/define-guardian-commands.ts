import { defineCommands } from "../define-command.ts";
import { jsonOption } from "../options/runtime-options.ts";

/** Commands that show what a station's guardian observed in runs and did about them. */
export const guardianCommands = defineCommands([
  {
    path: ["guardian", "status"],
    summary: "Show the progress of active runs, as the guardian sees it",
    details: "The station's guardian looks at each run after each step. `guardian` in the config file defines what it may do.",
    examples: ["caisson guardian status"],
    load: async () => (await import("./guardian-commands.ts")).status,
  },
  {
    path: ["guardian", "log"],
    summary: "List the guardian's interventions and their effects",
    options: [{ name: "limit", value: "N", summary: "Show at most this many, newest first (default 100)" }, jsonOption],
    arguments: [{ name: "RUN", summary: "only this run: its id, an id prefix, or its name", optional: true, completes: ["run"] }],
    examples: ["caisson guardian log"],
    load: async () => (await import("./guardian-commands.ts")).log,
  },
  {
    path: ["guardian", "explain"],
    summary: "Show the guardian's observations and interventions in a run, with evidence",
    details: "Numbers refer to the events that `caisson logs RUN --json` prints.",
    arguments: [{ name: "RUN", summary: "a run's id, an id prefix, or its name", completes: ["run"] }],
    examples: ["caisson guardian explain run_k3v7q2m5x4ab"],
    load: async () => (await import("./guardian-commands.ts")).explain,
  },
]);
