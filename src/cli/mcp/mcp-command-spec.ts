import type { CommandSpec } from "../command.ts";
import { runtimeOption } from "../options/runtime-options.ts";
import { sandboxOptions } from "../options/sandbox-options.ts";
import { workspaceOptions } from "../options/workspace-options.ts";

export const mcpCommand: CommandSpec = {
  path: ["mcp"],
  summary: "Give a model sandboxes: an MCP server on standard input and output",
  details: [
    "For programs that speak the Model Context Protocol, such as Claude Code, Codex or Cursor, which start it by themselves.",
    "The options are what new sandboxes and runs are made with; the model can ask for less, never for more.",
    "Sandboxes that it makes are removed when the program ends, unless it asks to keep them.",
    "A station that runs speaks MCP over HTTP, too, at /mcp.",
  ].join("\n"),
  handlesSignals: true,
  options: [
    { name: "all", summary: "Let it reach every sandbox and run that is there, not only those that it makes" },
    { name: "model", value: "PROVIDER/MODEL", summary: "The model of agents that it starts" },
    runtimeOption,
    ...workspaceOptions,
    ...sandboxOptions,
  ],
  arguments: [],
  examples: [
    ["claude mcp add caisson -- caisson mcp", "Claude Code: sandboxes over the folder that it is started in"],
    ["caisson mcp --workspace ~/project --network registries", "this folder, copy-on-write; package registries and nothing else"],
    ["caisson mcp --no-workspace", "empty sandboxes without a network"],
  ],
  load: async () => ({ run: (await import("./mcp.ts")).mcp }),
};
