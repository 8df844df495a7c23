import type { CommandSpec } from "../command.ts";
import { jsonOption } from "../options/runtime-options.ts";

/** What the guardian of a station sees in runs, and what it did about them. */
export const guardianCommands: readonly CommandSpec[] = [
  {
    path: ["guardian", "status"],
    summary: "Progress of active runs, as the guardian sees them",
    details: "A station's guardian looks at each run after each of its steps. What it may do is in the configuration, under `guardian`.",
    options: [jsonOption],
    arguments: [],
    examples: [["caisson guardian status", ""]],
    load: async () => ({ run: (await import("./guardian-commands.ts")).status }),
  },
  {
    path: ["guardian", "log"],
    summary: "List what the guardian did about runs, and what came of it",
    options: [{ name: "limit", value: "N", summary: "Maximum number, the newest first (default 100)" }, jsonOption],
    arguments: [{ name: "RUN", summary: "of this run only: its id, the beginning of it, or its name", optional: true, completes: ["run"] }],
    examples: [["caisson guardian log", ""]],
    load: async () => ({ run: (await import("./guardian-commands.ts")).log }),
  },
  {
    path: ["guardian", "explain"],
    summary: "Show what the guardian saw and did in a run, with its evidence",
    details: "Numbers are those of the run's events: `caisson logs RUN --json` has them.",
    options: [jsonOption],
    arguments: [{ name: "RUN", summary: "a run's id, the beginning of it, or its name", completes: ["run"] }],
    examples: [["caisson guardian explain run_k3v7q2m5x4ab", ""]],
    load: async () => ({ run: (await import("./guardian-commands.ts")).explain }),
  },
];
