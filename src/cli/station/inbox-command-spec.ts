import type { CommandSpec } from "../command.ts";

export const inboxCommand: CommandSpec = {
  path: ["inbox"],
  summary: "List what waits for you: questions of runs, approvals, gates, conflicts, ships, unresponsive sandboxes",
  options: [{ name: "json", summary: "Print JSON" }],
  arguments: [],
  examples: [["caisson inbox", "What is asked, and the command that answers it"]],
  load: async () => ({ run: (await import("./inbox-command.ts")).inbox }),
};
