import type { CommandSpec, OptionSpec } from "../command.ts";

const json: OptionSpec = { name: "json", summary: "Print JSON" };
export const inputOption: OptionSpec = { name: "input", value: "K=V", repeat: true, summary: "An input of the agent's template" };

export const agentCommands: readonly CommandSpec[] = [
  {
    path: ["agent", "ls"],
    summary: "List agents",
    options: [json],
    arguments: [],
    examples: [["caisson agent ls", ""]],
    load: async () => ({ run: (await import("./agent-commands.ts")).ls }),
  },
  {
    path: ["agent", "show"],
    summary: "Show an agent as it would run",
    options: [inputOption, json],
    arguments: [{ name: "AGENT", summary: "a name or a .prompt file" }],
    examples: [["caisson agent show coder", ""]],
    load: async () => ({ run: (await import("./agent-commands.ts")).show }),
  },
  {
    path: ["agent", "validate"],
    summary: "Check agent files",
    options: [json],
    arguments: [{ name: "FILE", summary: "a .prompt file", repeat: true }],
    examples: [["caisson agent validate agents/*.prompt", ""]],
    load: async () => ({ run: (await import("./agent-commands.ts")).validate }),
  },
  {
    path: ["trust"],
    summary: "Grant an agent's file what it asks for, after seeing it",
    details: [
      "A file that came with a folder may bring prompts, choose tools and tighten limits. Everything else it asks for is shown here, and",
      "counts once you agreed to it, for exactly this content: a file that changes is not trusted any more, and the difference is shown.",
      "Exit code: 0 when everything named is trusted or needs no trust, otherwise 1.",
    ].join("\n"),
    options: [
      { name: "yes", short: "y", summary: "Agree without being asked" },
      { name: "list", summary: "Show what is trusted" },
      { name: "revoke", summary: "Take back what was agreed to, for a file or all below a folder" },
      json,
    ],
    arguments: [{ name: "PATH", summary: "agent files, or folders that have some (default: this folder)", optional: true, repeat: true }],
    examples: [
      ["caisson trust agents/reviewer.prompt", "see what it asks for, and agree or not"],
      ["caisson trust --json .", "only look: nothing is granted without --yes"],
      ["caisson trust --revoke agents/reviewer.prompt", ""],
    ],
    load: () => import("./trust.ts"),
  },
];
