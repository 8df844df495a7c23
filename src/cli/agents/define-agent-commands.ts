import type { OptionDefinition } from "../command.ts";
import { defineCommands } from "../define-command.ts";
import { jsonOption as json } from "../options/runtime-options.ts";

export const inputOption: OptionDefinition = { name: "input", value: "K=V", repeat: true, summary: "Set an input of the agent's template" };

export const agentCommands = defineCommands([
  {
    path: ["agent", "ls"],
    summary: "List agents",
    examples: ["caisson agent ls"],
    load: async () => (await import("./agent-commands.ts")).ls,
  },
  {
    path: ["agent", "show"],
    summary: "Show an agent with all its defaults filled in",
    options: [inputOption, json],
    arguments: [{ name: "AGENT", summary: "a name or a .prompt file" }],
    examples: ["caisson agent show coder"],
    load: async () => (await import("./agent-commands.ts")).showAgent,
  },
  {
    path: ["agent", "validate"],
    summary: "Check agent files",
    arguments: [{ name: "FILE", summary: "a .prompt file", repeat: true }],
    examples: ["caisson agent validate agents/*.prompt"],
    load: async () => (await import("./agent-commands.ts")).validate,
  },
  {
    path: ["trust"],
    summary: "Review what an agent file asks for, and grant it",
    details: [
      "An agent file that came with a folder may set prompts, choose tools and tighten limits. Anything beyond that needs your consent,",
      "which covers exactly this content: after a change, the file is no longer trusted, and this command shows the difference.",
      "Exit code: 0 if every named file is trusted or needs no trust, otherwise 1.",
    ].join("\n"),
    options: [
      { name: "yes", short: "y", summary: "Agree without a prompt" },
      { name: "list", summary: "List trusted files" },
      { name: "revoke", summary: "Withdraw consent for a file, or for all files below a folder" },
      json,
    ],
    arguments: [
      { name: "PATH", summary: "agent files, or folders that contain some (default: this folder)", optional: true, repeat: true },
    ],
    examples: [
      ["caisson trust agents/reviewer.prompt", "review what it asks for, and decide"],
      ["caisson trust --json .", "only look; nothing is granted without --yes"],
      "caisson trust --revoke agents/reviewer.prompt",
    ],
    load: async () => (await import("./trust.ts")).runTrust,
  },
]);
