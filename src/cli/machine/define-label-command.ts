import { defineCommand } from "../define-command.ts";
import { jsonOption } from "../options/runtime-options.ts";

export const labelCommand = defineCommand({
  path: ["label"],
  summary: "Show or change the labels of a run or a sandbox",
  details:
    "`caisson ps --label K=V` and `caisson sandbox ls --label K=V` filter by labels. You can still change the labels of an ended run.",
  options: [{ name: "remove", value: "KEY", repeat: true, summary: "Remove this label" }, jsonOption],
  arguments: [
    { name: "NAME", summary: "a run or a sandbox, by its id, the beginning of it, or its name", completes: ["run", "sandbox"] },
    { name: "KEY=VALUE", summary: "a label to set", optional: true, repeat: true },
  ],
  examples: ["caisson label run_k3v7q2m5x4ab team=parsers --remove draft", ["caisson label my-sandbox", "list its labels"]],
  load: async () => (await import("./label.ts")).runLabel,
});
