import type { ArgumentDefinition } from "../command.ts";
import { defineCommands } from "../define-command.ts";
import { jsonOption as json } from "../options/runtime-options.ts";

const runArgument: ArgumentDefinition = { name: "RUN", summary: "a run's id, the beginning of it, or its name", completes: ["run"] };

/** Commands for queued runs, and for runs that a station adopts. */
export const queueCommands = defineCommands([
  {
    path: ["queue"],
    summary: "List queued runs, in the order in which they start",
    details: "`caisson stop RUN` removes one from the queue.",
    examples: [["caisson queue", "what waits, and for what"]],
    load: async () => (await import("./queue-commands.ts")).queue,
  },
  {
    path: ["prioritize"],
    summary: "Change the priority of a queued run",
    arguments: [runArgument, { name: "PRIORITY", summary: "low, normal, high, or a number from -100 to 100" }],
    examples: ["caisson prioritize run_k3v7q2m5x4ab high"],
    load: async () => (await import("./queue-commands.ts")).prioritize,
  },
  {
    path: ["adopt"],
    summary: "Let the station continue runs whose process died",
    details: [
      "A station continues the runs that it drove, and those started with --detach, by itself.",
      "A run that you started in a terminal stays yours: it waits for `caisson resume` or `caisson adopt`.",
    ].join("\n"),
    options: [{ name: "all", short: "a", summary: "Every interrupted run" }, json],
    arguments: [{ ...runArgument, optional: true, repeat: true }],
    examples: ["caisson adopt run_k3v7q2m5x4ab", ["caisson adopt --all", "after a reboot"]],
    load: async () => (await import("./queue-commands.ts")).adopt,
  },
]);
