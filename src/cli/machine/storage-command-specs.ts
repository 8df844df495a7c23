import type { CommandSpec, OptionSpec } from "../command.ts";
import { jsonOption } from "../options/runtime-options.ts";

const yes: OptionSpec = { name: "yes", short: "y", summary: "Do not ask" };

/** What is kept, what it takes, and how to get rid of it. */
export const storageCommands: readonly CommandSpec[] = [
  {
    path: ["rm"],
    summary: "Remove sandboxes, runs, sessions and snapshots",
    details:
      "Each is known by its id or name. A sandbox is ended; a run must have ended, and its log goes, with its files when\nthe session was its own. Changes that were not applied are named, and you are asked.",
    options: [{ ...yes, summary: "Do not ask, even when changes were not applied" }, jsonOption],
    arguments: [
      {
        name: "NAME",
        summary: "a sandbox, a run, a session or a snapshot, by id or name",
        repeat: true,
        completes: ["sandbox", "run", "session", "snapshot"],
      },
    ],
    examples: [["caisson rm build run_k3v7q2m5x4ab", "by name and by id"]],
    load: () => import("./rm.ts"),
  },
  {
    path: ["prune"],
    summary: "Remove what nobody uses any more",
    details:
      "Kept sandboxes in which nothing runs; sessions that have nothing unapplied; runs whose session is gone; snapshots\nwithout a name. What would go is shown first, and you are asked.",
    options: [
      { name: "older-than", value: "TIME", summary: "Sessions, runs and snapshots not used for this long, such as 7d (default) or 12h" },
      { name: "dry-run", summary: "Only say what would go" },
      yes,
      jsonOption,
    ],
    arguments: [],
    examples: [["caisson prune --older-than 1d --dry-run", "see what would go"]],
    load: () => import("./prune.ts"),
  },
  {
    path: ["df"],
    summary: "What takes room on the disk",
    options: [jsonOption],
    arguments: [],
    examples: [["caisson df", ""]],
    load: () => import("./df.ts"),
  },
];
