import type { ArgumentSpec, CommandSpec } from "../command.ts";
import { jsonOption as json } from "../options/runtime-options.ts";

const runArgument: ArgumentSpec = { name: "RUN", summary: "a run's id, the beginning of it, or its name", completes: ["run"] };

/** The runs that wait for a station, and those that one goes on with. */
export const queueCommands: readonly CommandSpec[] = [
  {
    path: ["queue"],
    summary: "List the runs that wait for the station to drive them",
    details: "In the order in which they are started. `caisson stop RUN` takes one out.",
    options: [json],
    arguments: [],
    examples: [["caisson queue", "who waits, and for what"]],
    load: async () => ({ run: (await import("./queue-commands.ts")).queue }),
  },
  {
    path: ["prioritize"],
    summary: "Let a queued run start sooner or later",
    options: [json],
    arguments: [runArgument, { name: "PRIORITY", summary: "low, normal, high, or a number from -100 to 100" }],
    examples: [["caisson prioritize run_k3v7q2m5x4ab high", ""]],
    load: async () => ({ run: (await import("./queue-commands.ts")).prioritize }),
  },
  {
    path: ["adopt"],
    summary: "Let the station continue runs whose process died",
    details: [
      "A station goes on by itself with the runs that it drove, and with those that were started with --detach.",
      "A run that was driven at a terminal is yours: it waits for `caisson resume`, or for this.",
    ].join("\n"),
    options: [{ name: "all", short: "a", summary: "Every run that was interrupted" }, json],
    arguments: [{ ...runArgument, optional: true, repeat: true }],
    examples: [
      ["caisson adopt run_k3v7q2m5x4ab", ""],
      ["caisson adopt --all", "after the machine was restarted"],
    ],
    load: async () => ({ run: (await import("./queue-commands.ts")).adopt }),
  },
];
