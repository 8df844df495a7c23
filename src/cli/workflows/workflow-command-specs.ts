import type { ArgumentSpec, CommandSpec, OptionSpec } from "../command.ts";

const json: OptionSpec = { name: "json", summary: "Print JSON" };
const file: ArgumentSpec = { name: "FILE", summary: "a workflow's definition, in YAML or JSON", completes: ["file"] };
const workflow: ArgumentSpec = { name: "WORKFLOW", summary: "an instance's id, or the beginning of it; see `caisson workflow ls`" };
const commands = () => import("./workflow-commands.ts");
const says = () => import("./workflow-says.ts");

export const workflowCommands: readonly CommandSpec[] = [
  {
    path: ["workflow", "validate"],
    summary: "Say what is wrong with a workflow's definition, and where",
    options: [json],
    arguments: [file],
    place: "here",
    examples: [["caisson workflow validate review.yaml", ""]],
    load: async () => ({ run: (await commands()).validate }),
  },
  {
    path: ["workflow", "run"],
    summary: "Start a workflow and follow it to its end",
    details: [
      "The instance keeps the definition it began with. A station drives it whatever becomes of this command; without one it goes on",
      "as long as this command does, and from where it was with `caisson workflow resume`.",
      "Exit code: 0 when it completed, 1 when it failed, 124 when its time was over, 130 when it was cancelled.",
    ].join("\n"),
    options: [
      { name: "input", short: "i", value: "NAME=VALUE", summary: "A value of its input; JSON, or else text", repeat: true },
      { name: "workspace", value: "FOLDER", summary: "What the workspaces of its steps begin with, copy-on-write (default: nothing)" },
      { name: "model", value: "MODEL", summary: "Use this model, whatever its steps name" },
      { name: "cron", value: "TIMES", summary: "Start an instance at these times (UTC), until it is cancelled; missed ones count as one" },
      { name: "overlap", value: "skip|queue", summary: "What to do when a time comes before the last instance has ended (default skip)" },
      { name: "detach", short: "d", summary: "Leave it to the station, and print its id" },
      { name: "json", summary: "Print events as JSON lines, and the instance last" },
    ],
    arguments: [file],
    examples: [
      ["caisson workflow run review.yaml --input ticket=C-7 --workspace .", ""],
      ["caisson workflow run nightly.yaml --detach", "a station does it"],
      ['caisson workflow run nightly.yaml --cron "0 3 * * *" --detach', "each night at three"],
    ],
    load: async () => ({ run: (await commands()).run }),
  },
  {
    path: ["workflow", "ls"],
    summary: "List instances of workflows",
    options: [
      { name: "all", short: "a", summary: "Also those that have ended" },
      { name: "waiting", summary: "Only those that wait for a person" },
      json,
    ],
    arguments: [],
    examples: [["caisson workflow ls --waiting", ""]],
    load: async () => ({ run: (await commands()).list }),
  },
  {
    path: ["workflow", "show"],
    summary: "Show an instance with its steps, and what it waits for",
    options: [json],
    arguments: [workflow],
    examples: [["caisson workflow show wf_k3v", ""]],
    load: async () => ({ run: (await commands()).show }),
  },
  {
    path: ["workflow", "cancel"],
    summary: "End an instance, with the runs and commands that are at work for it",
    options: [{ name: "text", value: "TEXT", summary: "Why" }],
    arguments: [workflow],
    examples: [["caisson workflow cancel wf_k3v", ""]],
    load: async () => ({ run: (await says()).cancel }),
  },
  {
    path: ["workflow", "pause"],
    summary: "Start no further step of an instance until it is resumed",
    options: [{ name: "text", value: "TEXT", summary: "Why" }],
    arguments: [workflow],
    examples: [["caisson workflow pause wf_k3v", ""]],
    load: async () => ({ run: (await says()).pause }),
  },
  {
    path: ["workflow", "resume"],
    summary: "Continue an instance that was paused or that nobody drives, and follow it",
    options: [{ name: "json", summary: "Print events as JSON lines, and the instance last" }],
    arguments: [workflow],
    examples: [["caisson workflow resume wf_k3v", ""]],
    load: async () => ({ run: (await commands()).resume }),
  },
  {
    path: ["workflow", "signal"],
    summary: "Send an instance a signal; it is kept until a step takes it",
    options: [
      { name: "data", value: "JSON", summary: "What the step is given (default null)" },
      { name: "key", value: "KEY", summary: "A second signal with the same key is the same one" },
    ],
    arguments: [workflow, { name: "SIGNAL", summary: "its name, as the step has it" }],
    examples: [["caisson workflow signal wf_k3v deployed --data '{\"version\": 7}'", ""]],
    load: async () => ({ run: (await says()).signal }),
  },
  {
    path: ["workflow", "approve"],
    summary: "Answer a step that asks for an approval",
    options: [
      { name: "deny", summary: "Say no" },
      { name: "text", value: "TEXT", summary: "What is to be said about it" },
      { name: "step", value: "PATH", summary: "Which step's; needed where several ask" },
    ],
    arguments: [workflow],
    examples: [
      ["caisson workflow approve wf_k3v", ""],
      ['caisson workflow approve wf_k3v --deny --text "tests are missing"', ""],
    ],
    load: async () => ({ run: (await says()).approve }),
  },
  {
    path: ["workflow", "retry"],
    summary: "Continue a failed instance from the steps that failed, and follow it",
    options: [{ name: "json", summary: "Print events as JSON lines, and the instance last" }],
    arguments: [workflow],
    examples: [["caisson workflow retry wf_k3v", ""]],
    load: async () => ({ run: (await commands()).retry }),
  },
  {
    path: ["workflow", "rm"],
    summary: "Forget instances that are over, with the workflows that were their steps; their runs and sessions stay",
    options: [],
    arguments: [{ ...workflow, repeat: true }],
    examples: [["caisson workflow rm wf_k3v", ""]],
    load: async () => ({ run: (await says()).remove }),
  },
];
