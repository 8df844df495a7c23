import type { CommandSpec } from "../command.ts";

export const undoCommand: CommandSpec = {
  path: ["undo"],
  summary: "Take back what the last turn of a run changed in files",
  details: "In its session; what was applied stays applied. Again takes back the turn before; the agent is told when it goes on.",
  options: [{ name: "json", summary: "Print JSON" }],
  arguments: [
    {
      name: "RUN",
      summary: "a run's id, the beginning of it, or its name (default: this folder's newest)",
      completes: ["run"],
      optional: true,
    },
  ],
  examples: [["caisson undo", "this folder's newest run"]],
  load: async () => ({ run: (await import("./undo.ts")).undo }),
};
