import { storageKindNames } from "../../contract/machine/storage-kinds.ts";
import type { OptionDefinition } from "../command.ts";
import { defineCommands } from "../define-command.ts";
import { jsonOption } from "../options/runtime-options.ts";

const yes: OptionDefinition = { name: "yes", short: "y", summary: "Do not ask for confirmation" };

/** Commands that show what is stored, and remove, back up or restore it. */
export const storageCommands = defineCommands([
  {
    path: ["rm"],
    summary: "Remove sandboxes, runs, sessions and snapshots",
    details:
      "Stops the named sandboxes first. A run must have ended; its log is removed, and so are its files unless\nthey are in a shared session. If there are unapplied changes, it lists them and asks you.",
    options: [{ ...yes, summary: "Do not ask, even about unapplied changes" }, jsonOption],
    arguments: [
      {
        name: "NAME",
        summary: "a sandbox, a run, a session or a snapshot, by id or name",
        repeat: true,
        completes: ["sandbox", "run", "session", "snapshot"],
      },
    ],
    examples: [["caisson rm build run_k3v7q2m5x4ab", "by name, and by id"]],
    load: async () => (await import("./rm.ts")).runRm,
  },
  {
    path: ["prune"],
    summary: "Remove unused sandboxes, sessions, runs, snapshots and files",
    details: [
      "Removes kept sandboxes without processes, sessions without unapplied changes, runs whose session was removed,",
      "and unnamed snapshots; and what is left over or can be fetched again: unpacked images, copies of the system,",
      "build steps of templates, repositories, packages, expired uploads, artifacts of removed runs, and old logs. Without them, `undo` cannot go",
      "back, so points of sessions go only if you name the kind. It lists everything first, and asks you.",
    ].join("\n"),
    options: [
      { name: "older-than", value: "TIME", summary: "Only what was unused for this long, such as 7d (default) or 12h" },
      { name: "dry-run", summary: "List what would be removed, and stop" },
      yes,
      jsonOption,
    ],
    arguments: [
      {
        name: "KIND",
        summary: `only these kinds: ${storageKindNames.join(", ")}`,
        repeat: true,
        optional: true,
      },
    ],
    examples: [
      ["caisson prune --older-than 1d --dry-run", "preview"],
      ["caisson prune packages points --older-than 30d", "only these kinds"],
    ],
    load: async () => (await import("./prune.ts")).runPrune,
  },
  {
    path: ["df"],
    summary: "Show disk usage",
    examples: ["caisson df"],
    load: async () => (await import("./df.ts")).runDf,
  },
  {
    path: ["backup"],
    summary: "Back up the state folder to a file, while work continues",
    details:
      "The backup contains runs, sessions with their files, snapshots, tokens, secrets and webhooks, but no caches and no live\nsandboxes (use `caisson sandbox snapshot` to keep one). It contains secrets: only you can read the file.",
    arguments: [{ name: "FILE", summary: "a new file; compressed if its name ends in .gz", completes: ["file"] }],
    examples: ["caisson backup caisson-2026-11-15.tar.gz"],
    load: async () => (await import("./backup.ts")).backup,
  },
  {
    path: ["restore"],
    summary: "Restore a backup into an empty state folder",
    details: "Restore only backups you made yourself: their content is trusted. Interrupted runs can be resumed.",
    arguments: [{ name: "FILE", summary: "a file that `caisson backup` wrote", completes: ["file"] }],
    examples: ["caisson restore caisson-2026-11-15.tar.gz"],
    load: async () => (await import("./backup.ts")).restore,
  },
]);
