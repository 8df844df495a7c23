import type { CommandSpec } from "../command.ts";

export const undoCommand: CommandSpec = {
  path: ["undo"],
  summary: "Take back what the last turn of a run changed in files",
  details: "In its session; what was applied stays applied. Again takes back the turn before; the agent is told when it goes on.",
  options: [
    { name: "to", value: "STEP", summary: "Every turn since this step; `caisson session info` says after which steps files were kept" },
    { name: "json", summary: "Print JSON" },
  ],
  arguments: [
    {
      name: "RUN",
      summary: "a run's id, the beginning of it, or its name (default: this folder's newest)",
      completes: ["run"],
      optional: true,
    },
  ],
  examples: [
    ["caisson undo", "this folder's newest run"],
    ["caisson undo run_k3v --to 4", "as it was after four steps"],
  ],
  load: async () => ({ run: (await import("./undo.ts")).undo }),
};
