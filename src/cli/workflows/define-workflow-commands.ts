import type { ArgumentDefinition, OptionDefinition } from "../command.ts";
import { defineCommands } from "../define-command.ts";
import { jobCommands, reasonOption } from "../durable/define-job-commands.ts";
import { jsonOption as json } from "../options/runtime-options.ts";
import { cleanupOption } from "../options/workspace-options.ts";

const file: ArgumentDefinition = { name: "FILE", summary: "a workflow's definition, in YAML or JSON", completes: ["file"] };
const workflow: ArgumentDefinition = { name: "WORKFLOW", summary: "an instance's id or id prefix; see `caisson workflow ls`" };
const commands = () => import("./workflow-commands.ts");
const jsonLines: OptionDefinition = { name: "json", summary: "Print events as JSON lines, and the instance last" };

const shared = jobCommands({
  verb: "workflow",
  argument: workflow,
  exampleId: "wf_k3v",
  commands: {
    ls: {
      summary: "List workflow instances",
      options: [
        { name: "all", short: "a", summary: "Include ended instances" },
        { name: "waiting", summary: "Only instances that wait for a person" },
        json,
      ],
      example: "caisson workflow ls --waiting",
    },
    show: { summary: "Show an instance, its steps, and what it waits for" },
    cancel: { summary: "Cancel an instance, with its active runs and commands", options: [reasonOption, json] },
    pause: { summary: "Pause an instance after its current steps", options: [reasonOption, json] },
    resume: { summary: "Resume a paused or interrupted instance, and follow it", options: [jsonLines] },
    rm: { summary: "Remove ended instances with their sub-workflows; runs and sessions stay" },
  },
  load: async () => (await commands()).workflowKind,
});

export const workflowCommands = defineCommands([
  {
    path: ["workflow", "validate"],
    summary: "Check a workflow definition, and show where it is wrong",
    arguments: [file],
    place: "here",
    examples: ["caisson workflow validate review.yaml"],
    load: async () => (await commands()).validateWorkflow,
  },
  {
    path: ["workflow", "run"],
    summary: "Start a workflow, and follow it to its end",
    details: [
      "The instance keeps the definition that it started with. A station drives it even if this command exits. Without a station",
      "it runs as long as this command does; `caisson workflow resume` continues it.",
      "Exit code: 0 if it completed, 1 if it failed, 124 if it timed out, 130 if it was cancelled.",
    ].join("\n"),
    options: [
      { name: "input", short: "i", value: "NAME=VALUE", summary: "Set an input; the value is JSON, or else text", repeat: true },
      { name: "workspace", value: "FOLDER", summary: "Start the steps' workspaces with this folder, copy-on-write (default: empty)" },
      { name: "model", value: "MODEL", summary: "Use this model instead of those that the steps name" },
      cleanupOption("workflow"),
      { name: "cron", value: "TIMES", summary: "Start an instance at these times (UTC) until cancelled; missed times count as one" },
      { name: "overlap", value: "skip|queue", summary: "If the last instance is still running at a start time: skip (default) or queue" },
      { name: "detach", short: "d", summary: "Leave it to the station, and print the instance's id" },
      jsonLines,
    ],
    arguments: [file],
    examples: [
      "caisson workflow run review.yaml --input ticket=C-7 --workspace .",
      ["caisson workflow run nightly.yaml --detach", "the station drives it"],
      ['caisson workflow run nightly.yaml --cron "0 3 * * *" --detach', "every night at three"],
    ],
    load: async () => (await commands()).runWorkflow,
  },
  shared.ls,
  shared.show,
  shared.cancel,
  shared.pause,
  shared.resume,
  {
    path: ["workflow", "signal"],
    summary: "Send an instance a signal, which waits until a step takes it",
    options: [
      { name: "data", value: "JSON", summary: "Data for the step (default null)" },
      { name: "key", value: "KEY", summary: "Ignore a second signal with the same key" },
      json,
    ],
    arguments: [workflow, { name: "SIGNAL", summary: "the signal's name, as in the step" }],
    examples: ["caisson workflow signal wf_k3v deployed --data '{\"version\": 7}'"],
    load: async () => (await commands()).signalWorkflow,
  },
  {
    path: ["workflow", "approve"],
    summary: "Answer a step that asks for an approval",
    options: [
      { name: "deny", summary: "Say no" },
      { name: "text", value: "TEXT", summary: "Comment on the answer" },
      { name: "step", value: "PATH", summary: "Step to answer, if several ask" },
      json,
    ],
    arguments: [workflow],
    examples: ["caisson workflow approve wf_k3v", 'caisson workflow approve wf_k3v --deny --text "tests are missing"'],
    load: async () => (await commands()).approveStep,
  },
  {
    path: ["workflow", "retry"],
    summary: "Retry the failed steps of an instance, and follow it",
    options: [jsonLines],
    arguments: [workflow],
    examples: ["caisson workflow retry wf_k3v"],
    load: async () => (await commands()).retryWorkflow,
  },
  shared.rm,
]);
