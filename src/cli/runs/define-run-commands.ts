import { agentCommands, inputOption } from "../agents/define-agent-commands.ts";
import type { ArgumentDefinition, OptionDefinition } from "../command.ts";
import { defineCommands } from "../define-command.ts";
import { labelsOption, ownerOption, sinceOption } from "../options/list-options.ts";
import { isolatingRuntimeOption, jsonOption as json } from "../options/runtime-options.ts";
import { sandboxOptions } from "../options/sandbox-options.ts";
import { cleanupOption } from "../options/workspace-options.ts";
import { force, sessionCommands, yes } from "../sessions/define-session-commands.ts";
import { boundOptions } from "./run-bounds.ts";

const noPager: OptionDefinition = { name: "no-pager", summary: "Print everything without a pager (CAISSON_PAGER, else PAGER, else less)" };
const runArgument: ArgumentDefinition = {
  name: "RUN",
  summary: "a run's id, an id prefix, or its name; see `caisson ps` (default: this folder's newest)",
  completes: ["run"],
  optional: true,
};
const optionalRun: ArgumentDefinition = {
  name: "RUN",
  summary: "a run or a session, by id or name (default: this folder's newest run)",
  completes: ["run", "session"],
  optional: true,
};

const workArgument: ArgumentDefinition = {
  name: "RUN",
  summary: "a run, a session or a kept sandbox, by id or name (default: this folder's newest run)",
  optional: true,
  completes: ["run", "session", "sandbox"],
};
const noResume: OptionDefinition = { name: "no-resume", summary: "Only record it; do not resume a run whose process died" };

/** Options that start or continue a run. */
export const runOptions: readonly OptionDefinition[] = [
  {
    name: "continue",
    short: "c",
    value: "RUN",
    isValue: (word) => word.startsWith("run_"),
    summary: "Continue a finished run with this message (default: this folder's newest); conversation and files stay",
  },
  { name: "task-file", value: "FILE", summary: "Read the task from this file; `-` reads standard input" },
  { name: "repo", value: "DIR|URL", summary: "Work on this folder (default: this one, copy-on-write) or git URL" },
  {
    name: "from",
    value: "RUN[@STEP]",
    summary: "Start with a copy of the files of this run or session, now or after one of its steps",
    completes: ["run", "session"],
  },
  { name: "branch", value: "NAME", summary: "Branch of the git URL" },
  { name: "ref", value: "REF", summary: "Tag or commit of the git URL; overrides --branch" },
  { name: "depth", value: "N", summary: "Fetch only the newest N commits of the git URL" },
  { name: "submodules", summary: "Also check out submodules, from the repository's own host only" },
  {
    name: "submodules-from",
    value: "HOST|URL",
    repeat: true,
    summary: "Also allow submodules from this host: HOST for https, or ssh://HOST (which is offered your SSH keys)",
  },
  { name: "ssh-key", value: "FILE", summary: "Key for an SSH URL; it stays on the host" },
  { name: "no-workspace", summary: "Start with an empty workspace" },
  { name: "model", value: "NAME", summary: "Use this model: anthropic/…, openai/…, google/…, compatible/… or scripted:FILE" },
  inputOption,
  { name: "name", value: "NAME", summary: "Name the run; commands accept the name instead of its id" },
  { name: "label", value: "K=V", repeat: true, summary: "Label the run; `caisson ps --label K=V` finds it" },
  {
    name: "session",
    value: "NAME",
    summary: "Work in this session, created if needed; its files stay for the next run",
    completes: ["session"],
  },
  { name: "workflow", value: "NAME", summary: "Work in this workflow's shared workspace" },
  cleanupOption("run, or of the last run in a named session"),
  isolatingRuntimeOption,
  ...sandboxOptions,
  { name: "max-cost", value: "USD", summary: "Pause and ask at this cost" },
  { name: "max-tokens", value: "N", summary: "Pause and ask after N tokens" },
  { name: "max-steps", value: "N", summary: "Pause and ask after N steps (default 50)" },
  { name: "timeout", value: "TIME", summary: "Pause and ask after this much working time (default 30m)" },
  {
    name: "permissions",
    value: "PRESET",
    summary: "strict: also deny `rm -rf` and `git reset --hard`, and ask before commits, in the agent's copy",
    choices: ["strict"],
  },
  { name: "guardian", value: "WORD", summary: "Turn the station's guardian on or off for this run", choices: ["on", "off"] },
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
  { name: "record", value: "DIR", summary: "Record every model answer" },
  { name: "replay", value: "DIR", summary: "Replay recorded model answers; a missing or changed call fails" },
  { name: "priority", value: "PRIORITY", summary: "Priority in the station's queue: low, normal (default), high, or -100 to 100" },
  { name: "start-at", value: "TIME", summary: "Start later, through the station: a time such as 2026-01-31T22:00, or 2h from now" },
  { name: "detach", short: "d", summary: "Run in the background, and print the run's id" },
  { name: "json", summary: "Print events as JSON lines" },
];

export const runCommands = defineCommands([
  {
    path: ["run"],
    summary: "Give an agent a task",
    details:
      "The agent works in a sandbox on a copy-on-write view of the folder; nothing outside changes until you apply it.\nExit code: 0 done, 1 not done (stuck, error, budget), 124 timed out, 130 stopped, 125 if Caisson itself failed.\nCtrl-C interrupts the run and asks; a second one stops it.",
    options: runOptions,
    arguments: [{ name: "WORDS", summary: "the task, or - to read it; an agent's name may come first", optional: true, repeat: true }],
    examples: [
      ['caisson run "fix the failing test"', "the built-in coder, in this folder"],
      ['caisson run reviewer "look at the last commit" --model anthropic/claude-sonnet-4-5', "another agent"],
      ["git diff | caisson run reviewer -", "read the task from standard input"],
      ['caisson run "try it without the cache" --from run_k3v', "another attempt, on a copy of that run's files"],
      ['caisson run --continue "now also the tests"', "another turn of this folder's newest run"],
      ['caisson run "add a --json flag" --repo https://example.org/tool.git --max-cost 2', "a fresh clone, with a budget"],
    ],
    handlesSignals: true,
    load: async () => (await import("./run-agent.ts")).runAgent,
  },
  {
    path: ["ps"],
    summary: "List runs",
    options: [
      { name: "all", short: "a", summary: "Show runs of every folder, and all ended runs instead of the last ten" },
      { name: "agent", value: "AGENT", summary: "Only runs of this agent" },
      { name: "model", value: "MODEL", summary: "Only runs of this model" },
      { name: "text", value: "WORDS", summary: "Only runs whose task or name contains these words" },
      labelsOption,
      ownerOption,
      sinceOption,
      json,
    ],
    examples: [
      ["caisson ps", "active and recent runs of this folder"],
      ["caisson ps --all", "on the whole machine"],
      ["caisson ps --all --label team=parsers --since 7d", "a team's runs of the last week"],
    ],
    load: async () => (await import("./ps.ts")).ps,
  },
  {
    path: ["logs"],
    summary: "Show what a run did, or the output of a detached command",
    details:
      "For a sandbox, it shows the last megabyte that the command of `caisson exec -d` wrote to each stream, and how it ended.\nThe command's standard error goes to standard error. A new follower takes over from the previous one.",
    options: [
      { name: "follow", short: "f", summary: "Keep following until it ends" },
      {
        name: "process",
        value: "REF",
        summary: "For a sandbox: show this command, by the reference that `exec -d --json` printed, not the newest",
      },
      { name: "from", value: "SEQ", summary: "Start at this event" },
      { name: "check", summary: "Check the whole log for damage instead" },
      noPager,
      json,
    ],
    arguments: [workArgument],
    examples: [
      ["caisson logs -f run_k3v7q2m5x4ab", "watch it"],
      ["caisson logs -f sb_k3v7q2m5x4ab", "watch a detached command"],
      ["caisson logs --json run_k3v7q2m5x4ab", "every event, for programs"],
    ],
    load: async () => (await import("./run-control.ts")).logs,
  },
  {
    path: ["replay"],
    summary: "Run a run's loop again from its log, and compare",
    details:
      "Model answers come from the log, so nothing is sent or paid for. By default the tools' results do, too, and every event is compared.\nExit code: 0 the same, 1 different, 125 if the recording is incomplete or cannot be replayed.",
    options: [
      {
        name: "tools",
        value: "HOW",
        summary: "recorded (default), or live: run the tools again without network, on a copy of the files that the run began with",
        choices: ["recorded", "live"],
      },
      {
        name: "ignore",
        value: "PATTERN",
        repeat: true,
        summary: "With live tools: ignore differences in lines that match this regular expression",
      },
      { name: "keep", summary: "With live tools: keep the copy of the files as a session" },
      { name: "live-from", value: "STEP", summary: "Replay up to this step, then continue live as a new run" },
      json,
    ],
    arguments: [runArgument],
    examples: [
      ["caisson replay run_k3v7q2m5x4ab", "check that the same events come out"],
      ["caisson replay --tools live --ignore '[0-9.]+ ?m?s'", "find the first step of this folder's newest run with other results"],
    ],
    load: async () => (await import("./replay-run.ts")).replayRun,
  },
  {
    path: ["attach"],
    summary: "Watch a run until it ends",
    details: "For a long run, it starts with the last 2,000 events, and says how many it skipped. With --json it prints all.",
    options: [{ name: "all", summary: "Start with the first event" }, json],
    arguments: [optionalRun],
    examples: [["caisson attach", "this folder's newest run"]],
    load: async () => (await import("./run-control.ts")).attach,
  },
  {
    path: ["resume"],
    summary: "Resume a run that was interrupted, held or stopped, or that reached a limit",
    options: [
      ...boundOptions("For a run that ended: new total limit of"),
      { name: "unless-ended", summary: "Do nothing if the run has ended" },
      json,
    ],
    arguments: [optionalRun],
    examples: [
      ["caisson resume run_k3v7q2m5x4ab", "exactly where it stopped"],
      ["caisson resume --max-steps 100", "this folder's newest run, which used up its 50 steps"],
    ],
    handlesSignals: true,
    load: async () => (await import("./run-control.ts")).resume,
  },
  {
    path: ["send"],
    summary: "Send an agent a message, even after its run has ended",
    details: "A finished run continues in the background with the message; conversation and files stay.",
    options: [
      { name: "steer", summary: "Deliver it before the next model call (default)" },
      { name: "queue", summary: "Deliver it when the agent would otherwise finish" },
      { name: "interrupt", summary: "Deliver it now, interrupting the agent" },
      { name: "wait", summary: "Wait until a model call has seen it, and print which one" },
      noResume,
      json,
    ],
    arguments: [runArgument, { name: "TEXT", summary: "the message", repeat: true }],
    examples: [
      ['caisson send run_k3v7q2m5x4ab "the API is in src/http"', "steer it"],
      ['caisson send "now also the tests"', "this folder's newest run, even if it has ended"],
    ],
    load: async () => (await import("./run-control.ts")).send,
  },
  {
    path: ["answer"],
    summary: "Answer a run's question",
    options: [
      { name: "question", value: "ID", summary: "Answer this question (default: the oldest open one)" },
      ...boundOptions("For a question about a budget: new limit of"),
      noResume,
      json,
    ],
    arguments: [
      runArgument,
      { name: "ANSWER", summary: "allow, always or deny" },
      { name: "TEXT", summary: "a comment for the agent", optional: true, repeat: true },
    ],
    examples: [["caisson answer run_k3v7q2m5x4ab allow", "let it continue"]],
    load: async () => (await import("./run-control.ts")).answer,
  },
  {
    path: ["stop"],
    summary: "Stop runs",
    arguments: [{ ...runArgument, repeat: true }],
    examples: [["caisson stop run_k3v7q2m5x4ab", "its changes stay in its session"]],
    load: async () => (await import("./run-control.ts")).stop,
  },
  {
    path: ["diff"],
    summary: "Show the changes of a run or a sandbox",
    options: [
      { name: "stat", summary: "Only file names and line counts" },
      { name: "ignored", summary: "Include new files that your .gitignore files match" },
      { name: "applied", summary: "Show what the last `apply` changed" },
      {
        name: "from",
        value: "STEP",
        summary: "Show only what changed after this step",
      },
      {
        name: "to",
        value: "STEP",
        summary: "Show the changes as of this step; --at is the same",
      },
      { name: "at", value: "STEP", summary: "Show the changes as of this step" },
      noPager,
      json,
    ],
    arguments: [workArgument, { name: "PATH", summary: "only these files or folders", optional: true, repeat: true }],
    examples: [
      ["caisson diff", "changes of this folder's newest run, as a unified diff"],
      ["caisson diff src/parser.ts", "only that file"],
      ["caisson diff run_k3v --from 3 --to 5", "what steps 4 and 5 changed"],
    ],
    load: async () => (await import("../sessions/changes-commands.ts")).diff,
  },
  {
    path: ["apply"],
    summary: "Apply the changes of a run or a sandbox to your folder",
    details:
      "Applies all chosen changes or none. Files that tools outside act on (.envrc, .vscode, hooks …) are left out unless you name them.",
    options: [
      { name: "to", value: "DIR", summary: "Apply to this folder instead of the one it started from" },
      { name: "include-config", summary: "Include files that tools act on" },
      { name: "ignored", summary: "Include new files that your .gitignore files match" },
      { name: "force", summary: "Overwrite files that you changed since the agent started" },
      { name: "leave-out", value: "PATH", repeat: true, summary: "Leave out this file or folder" },
      json,
    ],
    arguments: [workArgument, { name: "PATH", summary: "only these files or folders", optional: true, repeat: true }],
    examples: [
      ["caisson apply run_k3v7q2m5x4ab src", "only the changes in src"],
      ["caisson apply --leave-out notes.md", "everything but one file"],
    ],
    load: async () => (await import("../sessions/changes-commands.ts")).apply,
  },
  {
    path: ["branch"],
    summary: "Create a git branch with the changes of a run or a sandbox",
    options: [
      { name: "name", value: "NAME", summary: "Branch name (default: caisson/SESSION)" },
      { name: "message", short: "m", value: "TEXT", summary: "Commit message" },
      { name: "to", value: "DIR", summary: "Your repository, for a session that started from a git URL" },
      { name: "include-config", summary: "Include files that tools act on" },
      json,
    ],
    arguments: [workArgument],
    examples: [['caisson branch --name fix/parser -m "Fix the parser"', "your working tree does not change"]],
    load: async () => (await import("../sessions/changes-commands.ts")).branch,
  },
  {
    path: ["discard"],
    summary: "Discard the changes of a run",
    options: [force, yes, json],
    arguments: [optionalRun],
    examples: [["caisson discard run_k3v7q2m5x4ab", "removes its session and files; the log stays"]],
    load: async () => (await import("../sessions/session-commands.ts")).discard,
  },
  ...sessionCommands,
  ...agentCommands,
]);
