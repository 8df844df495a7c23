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
    path: ["artifacts"],
    summary: "List the files that programs in a sandbox left with the station, or read one",
    details: "Programs leave them with PUT $CAISSON_SANDBOX_URL/v1/inside/artifacts/NAME, in a sandbox made with --station-access.",
    options: [{ name: "output", short: "o", value: "FILE", summary: "Write it to this file, which must not exist" }, jsonOption],
    arguments: [
      { name: "SANDBOX|RUN", summary: "an id, the beginning of it, or a name", completes: ["sandbox", "run"] },
      { name: "NAME", summary: "the one to read, to standard output", optional: true },
    ],
    examples: [
      ["caisson artifacts run_k3v7q2m5x4ab", ""],
      ["caisson artifacts build report.pdf --output report.pdf", ""],
    ],
    load: async () => ({ run: (await import("./artifact-commands.ts")).artifacts }),
  },
  {
    path: ["sandbox", "tell"],
    summary: "Leave a message for the programs in a sandbox, or tell them to pause, resume or abort",
    details: "They take it with POST $CAISSON_SANDBOX_URL/v1/inside/messages, in a sandbox made with --station-access.",
    options: [
      {
        name: "control",
        value: "WORD",
        summary: "What their next heartbeat hears: resume, pause or abort",
        choices: ["resume", "pause", "abort"],
      },
    ],
    arguments: [
      { name: "SANDBOX", summary: "see `caisson sandbox ls`", completes: ["sandbox"] },
      { name: "TEXT", summary: "the message", optional: true },
    ],
    examples: [['caisson sandbox tell build "use the other branch"', ""]],
    load: async () => ({ run: (await import("./artifact-commands.ts")).tell }),
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
