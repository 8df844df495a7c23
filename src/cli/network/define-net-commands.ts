import type { ArgumentDefinition } from "../command.ts";
import { defineCommands } from "../define-command.ts";
import { jsonOption as json } from "../options/runtime-options.ts";

const target: ArgumentDefinition = { name: "RUN|SANDBOX", summary: "a run or a sandbox, by id or name", completes: ["sandbox", "run"] };

const commands = () => import("./net-commands.ts");

export const netCommands = defineCommands([
  {
    path: ["net", "show"],
    summary: "Show a sandbox's network policy, its secrets, and the process that serves them",
    arguments: [target],
    examples: ["caisson net show sb_k3v7q2m5x4ab"],
    load: async () => (await commands()).showNetwork,
  },
  {
    path: ["net", "log"],
    summary: "Show a sandbox's connections and denials, with reasons",
    options: [{ name: "denied", summary: "Show only denials" }, { name: "follow", short: "f", summary: "Keep following" }, json],
    arguments: [target],
    examples: [["caisson net log run_k3v7q2m5x4ab --denied", "what the agent was denied"]],
    load: async () => (await commands()).log,
  },
  {
    path: ["net", "allow"],
    summary: "Let a running sandbox reach more hosts",
    arguments: [target, { name: "RULE", summary: "[private] [GET|HEAD] HOST[:PORT][/PATH], or registries", repeat: true }],
    examples: [
      "caisson net allow sb_k3v7q2m5x4ab github.com '*.githubusercontent.com'",
      ["caisson net allow run_k3v7q2m5x4ab 'GET api.github.com/repos'", "read-only, and only this path"],
    ],
    load: async () => (await commands()).allow,
  },
  {
    path: ["net", "deny"],
    summary: "Stop a running sandbox from reaching hosts, and close its connections to them",
    arguments: [target, { name: "HOST", summary: "a host, written as in the policy", repeat: true }],
    examples: ["caisson net deny sb_k3v7q2m5x4ab github.com"],
    load: async () => (await commands()).deny,
  },
  {
    path: ["net", "set"],
    summary: "Replace a running sandbox's network policy",
    arguments: [target, { name: "POLICY", summary: "none, open, registries, or rules", repeat: true }],
    examples: [["caisson net set sb_k3v7q2m5x4ab none", "cut it off"]],
    load: async () => (await commands()).set,
  },
  {
    path: ["net", "revoke"],
    summary: "Stop injecting a secret into a sandbox's requests",
    arguments: [target, { name: "SECRET", summary: "its name", repeat: true }],
    examples: ["caisson net revoke sb_k3v7q2m5x4ab GITHUB_TOKEN"],
    load: async () => (await commands()).revoke,
  },
  {
    path: ["net", "serve"],
    summary: "Serve a kept sandbox's network in this process",
    details:
      "Caisson starts this in the background for every kept sandbox with a network. Run it yourself after a crash, or to use another\nenvironment: secrets from variables come from the process that serves.",
    options: [],
    arguments: [{ name: "SANDBOX", summary: "a sandbox's id" }],
    place: "here",
    handlesSignals: true,
    examples: ["GITHUB_TOKEN=… caisson net serve sb_k3v7q2m5x4ab"],
    load: async () => (await commands()).serve,
  },
]);
