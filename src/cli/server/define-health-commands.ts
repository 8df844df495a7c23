import { defineCommands } from "../define-command.ts";
import { jsonOption } from "../options/runtime-options.ts";

export const healthCommands = defineCommands([
  {
    path: ["health"],
    summary: "Show the health of sandboxes, run drivers and stations",
    details: [
      "late, degraded, unresponsive: one, two, three missed heartbeats in a row. A station restarts unresponsive sandboxes.",
      "Exit code: 1 if something is unresponsive, otherwise 0.",
    ].join("\n"),
    examples: ["caisson health"],
    load: async () => (await import("./health-commands.ts")).health,
  },
  {
    path: ["artifacts"],
    summary: "List the artifacts of a run or sandbox, or read one",
    details: "Programs inside upload artifacts with PUT $CAISSON_SANDBOX_URL/v1/inside/artifacts/NAME, in a sandbox with --station-access.",
    options: [{ name: "output", short: "o", value: "FILE", summary: "Write it to this new file" }, jsonOption],
    arguments: [
      { name: "SANDBOX|RUN", summary: "a run or a sandbox, by id, id prefix or name", completes: ["sandbox", "run"] },
      { name: "NAME", summary: "the artifact to write to standard output", optional: true },
    ],
    examples: ["caisson artifacts run_k3v7q2m5x4ab", "caisson artifacts build report.pdf --output report.pdf"],
    load: async () => (await import("./artifact-commands.ts")).listArtifacts,
  },
  {
    path: ["sandbox", "tell"],
    summary: "Send a message, or pause, resume or abort, to the programs in a sandbox",
    details: "They receive it with POST $CAISSON_SANDBOX_URL/v1/inside/messages, in a sandbox with --station-access.",
    options: [
      {
        name: "control",
        value: "WORD",
        summary: "Sent with their next heartbeat: resume, pause or abort",
        choices: ["resume", "pause", "abort"],
      },
      jsonOption,
    ],
    arguments: [
      { name: "SANDBOX", summary: "see `caisson sandbox ls`", completes: ["sandbox"] },
      { name: "TEXT", summary: "the message", optional: true },
    ],
    examples: ['caisson sandbox tell build "use the other branch"'],
    load: async () => (await import("./artifact-commands.ts")).tellSandbox,
  },
  {
    path: ["incident", "ls"],
    summary: "List restarts of unresponsive sandboxes and drivers",
    examples: ["caisson incident ls"],
    load: async () => (await import("./health-commands.ts")).listIncidents,
  },
  {
    path: ["incident", "show"],
    summary: "Show the state of a sandbox or driver before it was restarted",
    details: "Its processes and usage as seen from the host, its last events, and the end of its commands' output.",
    arguments: [{ name: "INCIDENT", summary: "an incident's id or id prefix; see `caisson incident ls`" }],
    examples: ["caisson incident show inc_k3v7q2m5x4ab"],
    load: async () => (await import("./health-commands.ts")).showIncident,
  },
]);
