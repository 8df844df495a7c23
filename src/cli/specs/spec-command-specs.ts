import type { ArgumentSpec, CommandSpec, OptionSpec } from "../command.ts";
import { ownerOption, sinceOption } from "../options/list-options.ts";
import { jsonOption as json } from "../options/runtime-options.ts";
import { runOptions } from "../runs/run-command-specs.ts";

const commands = () => import("./spec-commands.ts");
const spec: ArgumentSpec = { name: "SPEC", summary: "a spec's id, the beginning of it, or its name; see `caisson spec ls`" };
/**
 * What the runs of a spec cannot have: they are several, nobody sits beside them, and their workspaces are the spec's.
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
    "record",
    "replay",
    "priority",
    "start-at",
    "detach",
    "json",
  ],
  ...["from", "from-step"],
]);
/** What is worked on, for a spec that has no project yet. */
const ofProjects = new Set([
  ...["repo", "branch", "ref", "depth", "submodules", "submodules-from", "ssh-key", "no-workspace", "hide", "show"],
]);
const gates: OptionSpec = {
  name: "gate",
  value: "PHASE",
  repeat: true,
  summary: "Wait for a person after this phase: requirements, design (default: both), or none",
  choices: ["requirements", "design", "none"],
};
const until: OptionSpec = { name: "plan", summary: "End with the plan: do none of the tasks" };
const detach: OptionSpec = { name: "detach", short: "d", summary: "Leave it to the station, and come back at once" };

export const specCommands: readonly CommandSpec[] = [
  {
    path: ["spec", "new"],
    summary: "Write an idea down as a spec, and print its id",
    details:
      "A spec goes from an idea to work that can be applied: explore, prd, requirements, design, tasks, sync, complete. Each phase is an agent's run in a sandbox.",
    options: [
      { name: "name", value: "NAME", summary: "A name that stands for the spec's id" },
      { name: "idea-file", value: "FILE", summary: "Read the idea from this file; `-` in its place reads it from standard input" },
      gates,
      { name: "parallel", value: "N", summary: "Tasks that are done at the same time, at most (default 1: one after the other)" },
      { name: "planner", value: "AGENT", summary: "The agent that writes phases (default planner)" },
      { name: "phase-agent", value: "PHASE=AGENT", summary: "The agent that writes one phase", repeat: true },
      { name: "coder", value: "AGENT", summary: "The agent that does tasks (default coder)" },
      ...runOptions.filter(({ name }) => !notOfSpecs.has(name)),
      json,
    ],
    arguments: [{ name: "IDEA", summary: "what is wanted, or - to read it", optional: true, repeat: true }],
    examples: [['caisson spec new "a --json flag for every command" --name json', "then: caisson spec run json"]],
    load: async () => ({ run: (await import("./spec-new.ts")).create }),
  },
  {
    path: ["spec", "run"],
    summary: "Work on a spec until it has ended or waits for you",
    details: "Exit code: 0 when it is done, planned or waits for you, 1 when it failed, 130 when it was cancelled.",
    options: [
      {
        name: "from",
        value: "PHASE",
        summary: "Rewrite it from this phase on",
        choices: ["explore", "prd", "requirements", "design", "tasks", "sync", "complete"],
      },
      ...runOptions.filter(({ name }) => ofProjects.has(name)),
      until,
      detach,
      json,
    ],
    arguments: [spec],
    handlesSignals: true,
    examples: [
      ["caisson spec run json", ""],
      ["caisson spec run json --from design", "the design and what follows from it, once more"],
    ],
    load: async () => ({ run: (await import("./spec-run.ts")).run }),
  },
  {
    path: ["spec", "resume"],
    summary: "Continue a spec that failed or was cancelled: what failed is retried",
    options: [until, detach, json],
    arguments: [spec],
    handlesSignals: true,
    examples: [["caisson spec resume json", ""]],
    load: async () => ({ run: (await import("./spec-run.ts")).resume }),
  },
  {
    path: ["spec", "ls"],
    summary: "List specs",
    options: [ownerOption, sinceOption, json],
    arguments: [],
    examples: [["caisson spec ls", ""]],
    load: async () => ({ run: (await commands()).list }),
  },
  {
    path: ["spec", "show"],
    summary: "Show a spec: phases, what was wrong with attempts, decisions, tasks, coverage, and what to do next",
    options: [json],
    arguments: [spec],
    examples: [["caisson spec show json", ""]],
    load: async () => ({ run: (await commands()).show }),
  },
  {
    path: ["spec", "approve"],
    summary: "Approve the requirements or the design of a spec that waits for approval",
    options: [
      { name: "phase", value: "PHASE", summary: "Which (default: the one that waits)", choices: ["requirements", "design"] },
      { name: "version", value: "N", summary: "What you looked at: refused when another version holds by now" },
      json,
    ],
    arguments: [spec],
    examples: [["caisson spec approve json --version 3", ""]],
    load: async () => ({ run: (await commands()).approve }),
  },
  {
    path: ["spec", "reject"],
    summary: "Say what must change: the phase is rewritten with your feedback",
    options: [
      { name: "phase", value: "PHASE", summary: "Which (default: the one that waits)", choices: ["requirements", "design"] },
      { name: "version", value: "N", summary: "What you looked at: refused when another version holds by now" },
      json,
    ],
    arguments: [spec, { name: "WORDS", summary: "what must change", repeat: true }],
    examples: [['caisson spec reject json "streams need it, too"', ""]],
    load: async () => ({ run: (await commands()).reject }),
  },
  {
    path: ["spec", "edit"],
    summary: "Write a phase by hand, from a JSON file: a new version, after which later phases are rewritten",
    options: [json],
    arguments: [
      spec,
      { name: "PHASE", summary: "explore, prd, requirements, design, tasks or sync" },
      { name: "FILE", summary: "its JSON, as `caisson spec export --format json` has it; - reads standard input" },
    ],
    examples: [["caisson spec edit json requirements requirements.json", ""]],
    load: async () => ({ run: (await commands()).edit }),
  },
  {
    path: ["spec", "cancel"],
    summary: "End a spec with its runs; what is written stays",
    options: [json],
    arguments: [spec],
    examples: [["caisson spec cancel json", ""]],
    load: async () => ({ run: (await commands()).cancel }),
  },
  {
    path: ["spec", "diff"],
    summary: "Show what differs between two versions of a spec",
    options: [
      { name: "from", value: "N", summary: "Default: the version before" },
      { name: "to", value: "N", summary: "Default: the last" },
      json,
    ],
    arguments: [spec],
    examples: [["caisson spec diff json --from 3 --to 5", ""]],
    load: async () => ({ run: (await commands()).diff }),
  },
  {
    path: ["spec", "export"],
    summary: "Print a spec as Markdown or JSON",
    options: [
      { name: "format", value: "FORMAT", summary: "markdown (default) or json", choices: ["markdown", "json"] },
      { name: "version", value: "N", summary: "As it was then" },
      json,
    ],
    arguments: [spec],
    examples: [["caisson spec export json > spec.md", ""]],
    load: async () => ({ run: (await commands()).exportSpec }),
  },
  {
    path: ["spec", "rm"],
    summary: "Forget specs that are over; their runs and sessions stay",
    options: [json],
    arguments: [{ ...spec, repeat: true }],
    examples: [["caisson spec rm json", ""]],
    load: async () => ({ run: (await commands()).remove }),
  },
];
