import { defineCommand } from "../define-command.ts";

export const inboxCommand = defineCommand({
  path: ["inbox"],
  summary: "List what waits for you: questions, approvals, conflicts, ships, unresponsive sandboxes",
  examples: [["caisson inbox", "each item, with the command that answers it"]],
  load: async () => (await import("./inbox-command.ts")).inbox,
});
