import { defineCommand } from "../define-command.ts";
import { runtimeOption } from "../options/runtime-options.ts";
import { sandboxOptions } from "../options/sandbox-options.ts";
import { workspaceOptions } from "../options/workspace-options.ts";

export const mcpCommand = defineCommand({
  path: ["mcp"],
  summary: "Start an MCP server on standard input and output that gives models sandboxes",
  details: [
    "For programs that speak the Model Context Protocol, such as Claude Code, Codex or Cursor. They start this command themselves.",
    "The options apply to new sandboxes and runs. The model can ask for less, never for more.",
    "Sandboxes that the model creates are removed when the program exits, unless it asks to keep them.",
    "A running station also serves MCP over HTTP, at /mcp.",
  ].join("\n"),
  handlesSignals: true,
  options: [
    { name: "all", summary: "Give access to every sandbox and run, not only those that it creates" },
    { name: "model", value: "PROVIDER/MODEL", summary: "Use this model for agents that it starts" },
    runtimeOption,
    ...workspaceOptions,
    ...sandboxOptions,
  ],
  examples: [
    ["claude mcp add caisson -- caisson mcp", "Claude Code: sandboxes over its current folder"],
    ["caisson mcp --workspace ~/project --network registries", "this folder, copy-on-write, and only package registries"],
    ["caisson mcp --no-workspace", "empty sandboxes without a network"],
  ],
  load: async () => (await import("./mcp.ts")).mcp,
});
