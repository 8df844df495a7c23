import type { ArgumentDefinition, OptionDefinition } from "../command.ts";
import { defineCommands } from "../define-command.ts";
import { jobCommands } from "../durable/define-job-commands.ts";
import { ownerOption, sinceOption } from "../options/list-options.ts";
import { jsonOption as json } from "../options/runtime-options.ts";
import { runOptions } from "../runs/define-run-commands.ts";

const commands = () => import("./spec-commands.ts");
const spec: ArgumentDefinition = { name: "SPEC", summary: "a spec's id, an id prefix, or its name; see `caisson spec ls`" };
/**
 * Options that the runs of a spec cannot have: a spec has several runs, they are unattended, and the spec owns their
 * workspaces.
 */
const notOfSpecs = new Set([
  ...[
    "continue",
    "task-file",
    "input",
    "name",
    "label",
    "session",
    "workflow",
    "cleanup",
    "record",
    "replay",
    "priority",
    "start-at",
    "detach",
    "json",
  ],
  ...["from", "from-step"],
]);
/** Options that choose the project, for a spec that has none yet. */
const ofProjects = new Set([
  ...["repo", "branch", "ref", "depth", "submodules", "submodules-from", "ssh-key", "no-workspace", "hide", "show"],
]);
const gates: OptionDefinition = {
  name: "gate",
  value: "PHASE",
  repeat: true,
  summary: "Wait for your approval after this phase: requirements, design (default: both), or none",
  choices: ["requirements", "design", "none"],
};
const until: OptionDefinition = { name: "plan", summary: "Stop after the plan, before any task" };
const detach: OptionDefinition = { name: "detach", short: "d", summary: "Leave it to the station, and return at once" };

const shared = jobCommands({
  verb: "spec",
  argument: spec,
  exampleId: "json",
  commands: {
    resume: {
      summary: "Continue a failed or cancelled spec, and retry what failed",
      options: [until, detach, json],
      handlesSignals: true,
    },
    ls: { summary: "List specs", options: [ownerOption, sinceOption, json] },
    show: { summary: "Show a spec: phases, failed attempts, decisions, tasks, coverage, next step" },
    cancel: { summary: "Cancel a spec and its runs; the phases it wrote stay" },
    rm: { summary: "Remove finished specs; their runs and sessions stay" },
  },
  load: async () => (await commands()).specKind,
});

export const specCommands = defineCommands([
  {
    path: ["spec", "new"],
    summary: "Create a spec from an idea, and print its id",
    details:
      "A spec takes an idea to changes you can apply, in phases: explore, prd, requirements, design, tasks, sync, complete. Each phase is an agent's run in a sandbox.",
    options: [
      { name: "name", value: "NAME", summary: "Name the spec; commands accept the name instead of its id" },
      { name: "idea-file", value: "FILE", summary: "Read the idea from this file; `-` reads standard input" },
      gates,
      { name: "parallel", value: "N", summary: "Run up to N tasks at once (default 1)" },
      { name: "planner", value: "AGENT", summary: "Agent that writes phases (default planner)" },
      { name: "phase-agent", value: "PHASE=AGENT", summary: "Agent that writes this phase", repeat: true },
      { name: "coder", value: "AGENT", summary: "Agent that does tasks (default coder)" },
      ...runOptions.filter(({ name }) => !notOfSpecs.has(name)),
      json,
    ],
    arguments: [{ name: "IDEA", summary: "the idea, or - to read it", optional: true, repeat: true }],
    examples: [['caisson spec new "a --json flag for every command" --name json', "then: caisson spec run json"]],
    load: async () => (await import("./spec-new.ts")).create,
  },
  {
    path: ["spec", "run"],
    summary: "Work on a spec until it ends or waits for you",
    details: "Exit code: 0 if it is done, planned or waits for you, 1 if it failed, 130 if it was cancelled.",
    options: [
      {
        name: "from",
        value: "PHASE",
        summary: "Rewrite the spec from this phase on",
        choices: ["explore", "prd", "requirements", "design", "tasks", "sync", "complete"],
      },
      ...runOptions.filter(({ name }) => ofProjects.has(name)),
      until,
      detach,
      json,
    ],
    arguments: [spec],
    handlesSignals: true,
    examples: ["caisson spec run json", ["caisson spec run json --from design", "rewrite the design and everything after it"]],
    load: async () => (await import("./spec-run.ts")).runSpec,
  },
  shared.resume,
  shared.ls,
  shared.show,
  {
    path: ["spec", "approve"],
    summary: "Approve the requirements or the design of a spec",
    options: [
      { name: "phase", value: "PHASE", summary: "Approve this phase (default: the one that waits)", choices: ["requirements", "design"] },
      { name: "version", value: "N", summary: "Approve only if this is still the current version" },
      json,
    ],
    arguments: [spec],
    examples: ["caisson spec approve json --version 3"],
    load: async () => (await commands()).approve,
  },
  {
    path: ["spec", "reject"],
    summary: "Reject a phase of a spec with feedback, so that it is rewritten",
    options: [
      { name: "phase", value: "PHASE", summary: "Reject this phase (default: the one that waits)", choices: ["requirements", "design"] },
      { name: "version", value: "N", summary: "Reject only if this is still the current version" },
      json,
    ],
    arguments: [spec, { name: "WORDS", summary: "what must change", repeat: true }],
    examples: ['caisson spec reject json "streams need it, too"'],
    load: async () => (await commands()).reject,
  },
  {
    path: ["spec", "edit"],
    summary: "Replace a phase with your JSON file; later phases are rewritten",
    arguments: [
      spec,
      { name: "PHASE", summary: "explore, prd, requirements, design, tasks or sync" },
      { name: "FILE", summary: "its JSON, in the form of `caisson spec export --format json`; - reads standard input" },
    ],
    examples: ["caisson spec edit json requirements requirements.json"],
    load: async () => (await commands()).edit,
  },
  shared.cancel,
  {
    path: ["spec", "diff"],
    summary: "Show the differences between two versions of a spec",
    options: [
      { name: "from", value: "N", summary: "First version (default: the previous one)" },
      { name: "to", value: "N", summary: "Second version (default: the last one)" },
      json,
    ],
    arguments: [spec],
    examples: ["caisson spec diff json --from 3 --to 5"],
    load: async () => (await commands()).diff,
  },
  {
    path: ["spec", "export"],
    summary: "Print a spec as Markdown or JSON",
    options: [
      { name: "format", value: "FORMAT", summary: "Output format: markdown (default) or json", choices: ["markdown", "json"] },
      { name: "version", value: "N", summary: "Print this version instead of the last" },
      json,
    ],
    arguments: [spec],
    examples: ["caisson spec export json > spec.md"],
    load: async () => (await commands()).exportSpec,
  },
  shared.rm,
]);
