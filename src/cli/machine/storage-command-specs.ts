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
    summary: "Show disk usage",
    options: [jsonOption],
    arguments: [],
    examples: [["caisson df", ""]],
    load: () => import("./df.ts"),
  },
  {
    path: ["backup"],
    summary: "Write everything that is kept into a file, while work goes on",
    details:
      "Runs, sessions with their files, snapshots, tokens, secrets, webhooks. Sandboxes that live right now are left out: keep\nwhat is in one with `caisson sandbox snapshot`. Caches are, too. The file holds secrets; only you can read it.",
    options: [jsonOption],
    arguments: [{ name: "FILE", summary: "a new file; compressed where it ends in .gz", completes: ["file"] }],
    examples: [["caisson backup caisson-2026-11-15.tar.gz", ""]],
    load: async () => ({ run: (await import("./backup.ts")).backup }),
  },
  {
    path: ["restore"],
    summary: "Bring a backup back into an empty state folder",
    details: "Only a backup of your own: what is in it is taken as it is. Runs that were under way can be resumed.",
    options: [jsonOption],
    arguments: [{ name: "FILE", summary: "what `caisson backup` wrote", completes: ["file"] }],
    examples: [["caisson restore caisson-2026-11-15.tar.gz", ""]],
    load: async () => ({ run: (await import("./backup.ts")).restore }),
  },
];
