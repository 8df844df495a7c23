import { defineCommands } from "../define-command.ts";
import { jsonOption } from "../options/runtime-options.ts";
import { boundOptions } from "./run-bounds.ts";

export const forkCommands = defineCommands([
  {
    path: ["fork"],
    summary: "Continue a copy of a run after one of its steps, or several copies",
    details:
      "A fork has the run's conversation, its files and what it had left of its limits; from then on the two are independent.\nWithout a message, it continues at once if the step was in the middle of a turn; otherwise it waits for `caisson send`.",
    options: [
      { name: "number", short: "n", value: "N", summary: "Create this many forks, which work in the background (default 1)" },
      { name: "send", value: "TEXT", summary: "Send this message to each fork" },
      { name: "model", value: "NAME", summary: "Use this model from here on" },
      { name: "name", value: "NAME", summary: "Name the fork; several are named NAME-1, NAME-2 …" },
      { name: "label", value: "K=V", repeat: true, summary: "Add a label to those of the run" },
      ...boundOptions("Instead of what the run had left: the fork's own limit of"),
      {
        name: "on-ask",
        value: "HOW",
        summary: "When a rule says ask: wait for a person, or deny (default: wait if on a terminal or detached)",
        choices: ["wait", "deny"],
      },
      {
        name: "on-budget",
        value: "HOW",
        summary: "At the end of a budget: ask, or stop (default: ask if on a terminal or detached)",
        choices: ["ask", "stop"],
      },
      { name: "detach", short: "d", summary: "Let it work in the background, and print its id" },
      jsonOption,
    ],
    arguments: [
      {
        name: "RUN",
        summary: "a run, by id or name; RUN@STEP for the run after that step (default: this folder's newest, after its last step)",
        completes: ["run"],
        optional: true,
      },
    ],
    examples: [
      ['caisson fork run_k3v --send "try it without the cache"', "another way to continue"],
      ["caisson fork run_k3v@4 -n 3 --model anthropic/claude-sonnet-4-5", "three more attempts from step four on"],
    ],
    handlesSignals: true,
    load: async () => (await import("./fork-run.ts")).forkRun,
  },
  {
    path: ["timeline"],
    summary: "Show the steps of a run, what each changed and cost, and its forks",
    options: [jsonOption],
    arguments: [
      {
        name: "RUN",
        summary: "a run's id, an id prefix, or its name (default: this folder's newest)",
        completes: ["run"],
        optional: true,
      },
    ],
    examples: [["caisson timeline run_k3v", "then: caisson diff run_k3v --from 3 --to 4"]],
    load: async () => (await import("./timeline.ts")).showTimeline,
  },
  {
    path: ["show"],
    summary: "Print a file of a run's workspace, as it is or as it was after a step",
    options: [{ name: "json", summary: "Print JSON, with the content in base64" }],
    arguments: [
      { name: "RUN", summary: "a run or session, by id or name; RUN@STEP for the file after that step", completes: ["run"] },
      { name: "PATH", summary: "the file, relative to the workspace" },
    ],
    examples: [["caisson show run_k3v@4 src/parser.ts", "the file after the fourth step"]],
    load: async () => (await import("./show-file.ts")).showFile,
  },
  {
    path: ["rewind"],
    summary: "Take a run back to one of its steps: conversation and files",
    details:
      "An active run is interrupted first. A fork preserves what is taken back; what that cost still counts. Applied changes stay.\nThe run then waits for `caisson send`. To take back files alone, use `caisson undo`.",
    options: [{ name: "to", value: "STEP", summary: "The last step that remains; 0 for none" }, jsonOption],
    arguments: [
      {
        name: "RUN",
        summary: "a run's id, an id prefix, or its name (default: this folder's newest)",
        completes: ["run"],
        optional: true,
      },
    ],
    examples: [["caisson rewind run_k3v --to 4", "then: caisson send run_k3v …"]],
    load: async () => (await import("./rewind-run.ts")).rewindRun,
  },
]);
