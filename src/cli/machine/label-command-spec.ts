import type { CommandSpec } from "../command.ts";
import { jsonOption } from "../options/runtime-options.ts";

export const labelCommand: CommandSpec = {
  path: ["label"],
  summary: "Show or change the labels of a run or a sandbox",
  details: "`caisson ps --label K=V` and `caisson sandbox ls --label K=V` find what has them. A run that has ended can have others, too.",
  options: [{ name: "remove", value: "KEY", repeat: true, summary: "Take this label away" }, jsonOption],
  arguments: [
    { name: "NAME", summary: "a run or a sandbox, by its id, the beginning of it, or its name", completes: ["run", "sandbox"] },
    { name: "KEY=VALUE", summary: "what it is to have", optional: true, repeat: true },
  ],
  examples: [
    ["caisson label run_k3v7q2m5x4ab team=parsers --remove draft", ""],
    ["caisson label my-sandbox", "what it has"],
  ],
  load: async () => await import("./label.ts"),
};
