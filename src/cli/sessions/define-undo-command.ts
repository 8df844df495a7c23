import { defineCommand } from "../define-command.ts";
import { jsonOption } from "../options/runtime-options.ts";

export const undoCommand = defineCommand({
  path: ["undo"],
  summary: "Undo the file changes of a run's last turn",
  details: "Changes only its session; applied changes stay. Repeat to undo the turn before. The agent learns of this when it continues.",
  options: [
    { name: "to", value: "STEP", summary: "Undo every turn since this step; `caisson session info` lists the steps with stored files" },
    jsonOption,
  ],
  arguments: [
    {
      name: "RUN",
      summary: "a run's id, an id prefix, or its name (default: this folder's newest)",
      completes: ["run"],
      optional: true,
    },
  ],
  examples: [
    ["caisson undo", "this folder's newest run"],
    ["caisson undo run_k3v --to 4", "back to the files after step four"],
  ],
  load: async () => (await import("./undo.ts")).undo,
});
