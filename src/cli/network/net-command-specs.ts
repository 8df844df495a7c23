import type { ArgumentSpec, CommandSpec, OptionSpec } from "../command.ts";

const json: OptionSpec = { name: "json", summary: "Print JSON" };
const target: ArgumentSpec = { name: "RUN|SANDBOX", summary: "a run or a sandbox, by id or name", completes: ["sandbox", "run"] };

export const netCommands: readonly CommandSpec[] = [
  {
    path: ["net", "show"],
    summary: "Show what a sandbox may reach, its secrets, and who serves it",
    options: [json],
    arguments: [target],
    examples: [["caisson net show sb_k3v7q2m5x4ab", ""]],
    load: async () => ({ run: (await import("./net-commands.ts")).show }),
  },
  {
    path: ["net", "log"],
    summary: "Show what was reached, and what was denied and why",
    options: [{ name: "denied", summary: "Only what was denied" }, { name: "follow", short: "f", summary: "Follow as it happens" }, json],
    arguments: [target],
    examples: [["caisson net log run_k3v7q2m5x4ab --denied", "what the agent was denied"]],
    load: async () => ({ run: (await import("./net-commands.ts")).log }),
  },
  {
    path: ["net", "allow"],
    summary: "Let a running sandbox reach more hosts",
    options: [],
    arguments: [target, { name: "RULE", summary: "[private] [GET|HEAD] HOST[:PORT][/PATH], or registries", repeat: true }],
    examples: [
      ["caisson net allow sb_k3v7q2m5x4ab github.com '*.githubusercontent.com'", ""],
      ["caisson net allow run_k3v7q2m5x4ab 'GET api.github.com/repos'", "only reading, only there"],
    ],
    load: async () => ({ run: (await import("./net-commands.ts")).allow }),
  },
  {
    path: ["net", "deny"],
    summary: "Stop a running sandbox from reaching hosts; open connections to them end",
    options: [],
    arguments: [target, { name: "HOST", summary: "as it was allowed", repeat: true }],
    examples: [["caisson net deny sb_k3v7q2m5x4ab github.com", ""]],
    load: async () => ({ run: (await import("./net-commands.ts")).deny }),
  },
  {
    path: ["net", "set"],
    summary: "Replace a running sandbox's policy",
    options: [],
    arguments: [target, { name: "POLICY", summary: "none, open, registries, or rules", repeat: true }],
    examples: [["caisson net set sb_k3v7q2m5x4ab none", "cut it off"]],
    load: async () => ({ run: (await import("./net-commands.ts")).set }),
  },
  {
    path: ["net", "revoke"],
    summary: "Stop giving out a secret's value",
    options: [],
    arguments: [target, { name: "SECRET", summary: "its name", repeat: true }],
    examples: [["caisson net revoke sb_k3v7q2m5x4ab GITHUB_TOKEN", ""]],
    load: async () => ({ run: (await import("./net-commands.ts")).revoke }),
  },
  {
    path: ["net", "serve"],
    summary: "Serve a kept sandbox's network in this process, until it ends",
    details:
      "Started by itself in the background whenever a sandbox with a network is kept. By hand it is of use after a crash, or to give it\nanother environment: secrets from variables are those of the process that serves.",
    options: [],
    arguments: [{ name: "SANDBOX", summary: "a sandbox's id" }],
    place: "here",
    handlesSignals: true,
    examples: [["GITHUB_TOKEN=… caisson net serve sb_k3v7q2m5x4ab", ""]],
    load: async () => ({ run: (await import("./net-commands.ts")).serve }),
  },
];
