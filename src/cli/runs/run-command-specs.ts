import { agentCommands, inputOption } from "../agents/agent-command-specs.ts";
import type { ArgumentSpec, CommandSpec, OptionSpec } from "../command.ts";
import { labelsOption, ownerOption, sinceOption } from "../options/list-options.ts";
import { jsonOption as json } from "../options/runtime-options.ts";
import { sandboxOptions } from "../options/sandbox-options.ts";
import { force, sessionCommands, yes } from "../sessions/session-command-specs.ts";
import { boundOptions } from "./run-bounds.ts";

const noPager: OptionSpec = { name: "no-pager", summary: "Print all of it; a terminal's pager is CAISSON_PAGER, else PAGER, else less" };
const runArgument: ArgumentSpec = {
  name: "RUN",
  summary: "a run's id, the beginning of it, or its name; see `caisson ps` (default: this folder's newest)",
  completes: ["run"],
  optional: true,
};
const optionalRun: ArgumentSpec = {
  name: "RUN",
  summary: "a run or a session, by id or name (default: this folder's newest run)",
  completes: ["run", "session"],
  optional: true,
};

const workArgument: ArgumentSpec = {
  name: "RUN",
  summary: "a run, a session or a kept sandbox, by id or name (default: this folder's newest run)",
  optional: true,
  completes: ["run", "session", "sandbox"],
};
const noResume: OptionSpec = { name: "no-resume", summary: "Only record it: a run that lost its process is not resumed in the background" };

/** What a run is made of, or goes on with. */
export const runOptions: readonly OptionSpec[] = [
  {
    name: "continue",
    short: "c",
    value: "RUN",
    isValue: (word) => word.startsWith("run_"),
    summary: "Say this to a run that has ended (default: this folder's newest): it goes on with its conversation and files",
  },
  { name: "task-file", value: "FILE", summary: "Read the task from this file; `-` in its place reads it from standard input" },
  { name: "repo", value: "DIR|URL", summary: "What to work on: a folder (default: this one, copy-on-write) or a git address" },
  {
    name: "from",
    value: "RUN[@STEP]",
    summary: "Begin with the files of this run or session, in a copy: as they are, or as they were after a step of it",
    completes: ["run", "session"],
  },
  { name: "branch", value: "NAME", summary: "The branch of a git address" },
  { name: "ref", value: "REF", summary: "A tag or commit of a git address; wins over --branch" },
  { name: "depth", value: "N", summary: "Only the newest N commits of a git address" },
  { name: "submodules", summary: "Also check out submodules, from the repository's own host only" },
  {
    name: "submodules-from",
    value: "HOST|URL",
    repeat: true,
    summary: "Another host they may come from: HOST for https, or ssh://HOST (your SSH keys are offered there)",
  },
  { name: "ssh-key", value: "FILE", summary: "The key for an SSH address; it stays on the host" },
  { name: "no-workspace", summary: "Start with an empty workspace" },
  { name: "model", value: "NAME", summary: "anthropic/…, openai/…, google/…, compatible/… or scripted:FILE" },
  inputOption,
  { name: "name", value: "NAME", summary: "A name that stands for the run's id" },
  { name: "label", value: "K=V", repeat: true, summary: "A label, to find the run by: `caisson ps --label K=V`" },
  {
    name: "session",
    value: "NAME",
    summary: "Work in this session, made if it is not there; its files stay for the next run",
    completes: ["session"],
  },
  { name: "workflow", value: "NAME", summary: "Work in this workflow's workspace, which all its runs share" },
  { name: "runtime", value: "NAME", summary: "Which runtime to use: auto (default), oci, docker", choices: ["auto", "oci", "docker"] },
  ...sandboxOptions,
  { name: "max-cost", value: "USD", summary: "Pause and ask when it has cost this much" },
  { name: "max-tokens", value: "N", summary: "Pause and ask after N tokens" },
  { name: "max-steps", value: "N", summary: "Pause and ask after N steps (default 50)" },
  { name: "timeout", value: "TIME", summary: "Pause and ask after this much working time (default 30m)" },
  {
    name: "permissions",
    value: "PRESET",
    summary: "strict: also deny `rm -rf` and `git reset --hard`, and ask about commits, in the agent's own copy",
    choices: ["strict"],
  },
  { name: "guardian", value: "WORD", summary: "Whether the station's guardian watches it", choices: ["on", "off"] },
  {
    name: "on-ask",
    value: "HOW",
    summary: "Where a rule says ask: wait for a person, or deny (default: wait on a terminal or detached)",
    choices: ["wait", "deny"],
  },
  {
    name: "on-budget",
    value: "HOW",
    summary: "When a budget is reached: ask, or stop (default: ask on a terminal or detached)",
    choices: ["ask", "stop"],
  },
  { name: "record", value: "DIR", summary: "Record every answer of the model" },
  { name: "replay", value: "DIR", summary: "Answer from what was recorded; a missing or changed call fails" },
  { name: "priority", value: "PRIORITY", summary: "In the station's queue: low, normal (default), high, or a number from -100 to 100" },
  { name: "start-at", value: "TIME", summary: "Let the station start it later: a time such as 2026-01-31T22:00, or 2h from now" },
  { name: "detach", short: "d", summary: "Run in the background; prints the run's id" },
  { name: "json", summary: "Print events as JSON lines" },
];

export const runCommands: readonly CommandSpec[] = [
  {
    path: ["run"],
    summary: "Let an agent work on a task",
    details:
      "The agent works in a sandbox on a copy-on-write view of the folder; nothing outside changes until you apply it.\nExit code: 0 done, 1 not done (stuck, error, budget), 124 timed out, 130 stopped, 125 when Caisson itself failed.\nCtrl-C holds the run and asks; a second one stops it.",
    options: runOptions,
    arguments: [{ name: "WORDS", summary: "the task, or - to read it; or an agent's name and the task", optional: true, repeat: true }],
    examples: [
      ['caisson run "fix the failing test"', "the built-in coder, in this folder"],
      ['caisson run reviewer "look at the last commit" --model anthropic/claude-sonnet-4-5', "another agent"],
      ["git diff | caisson run reviewer -", "the task from standard input; --task-file reads it from a file"],
      ['caisson run "try it without the cache" --from run_k3v', "another way, in a copy of that run's files"],
      ['caisson run --continue "now also the tests"', "the next turn of this folder's newest run"],
      ['caisson run "add a --json flag" --repo https://example.org/tool.git --max-cost 2', "a fresh clone, with a budget"],
    ],
    handlesSignals: true,
    load: () => import("./run-agent.ts"),
  },
  {
    path: ["ps"],
    summary: "List runs",
    options: [
      { name: "all", short: "a", summary: "Runs of every folder, and all that have ended, not just the last ten" },
      { name: "agent", value: "AGENT", summary: "Only runs of this agent" },
      { name: "model", value: "MODEL", summary: "Only runs of this model" },
      { name: "text", value: "WORDS", summary: "Only runs with these words in their task or name" },
      labelsOption,
      ownerOption,
      sinceOption,
      json,
    ],
    arguments: [],
    examples: [
      ["caisson ps", "what runs, waits or ended lately in this folder"],
      ["caisson ps --all", "on the whole machine"],
      ["caisson ps --all --label team=parsers --since 7d", "what a team asked for this week"],
    ],
    load: async () => ({ run: (await import("./ps.ts")).ps }),
  },
  {
    path: ["logs"],
    summary: "Show what a run did, or what a detached command in a sandbox wrote",
    details:
      "Of a sandbox: the last megabyte that the command of `caisson exec -d` wrote to each stream, and how it ended.\nWhat it wrote to standard error goes there; whoever follows it last has its output.",
    options: [
      { name: "follow", short: "f", summary: "Keep following until it ends" },
      { name: "process", value: "REF", summary: "Of a sandbox: this command, as `exec -d --json` names it, not the newest" },
      { name: "from", value: "SEQ", summary: "Start at this event" },
      { name: "check", summary: "Check the whole log for damage instead" },
      noPager,
      json,
    ],
    arguments: [workArgument],
    examples: [
      ["caisson logs -f run_k3v7q2m5x4ab", "watch it"],
      ["caisson logs -f sb_k3v7q2m5x4ab", "what a detached command writes"],
      ["caisson logs --json run_k3v7q2m5x4ab", "every event, for programs"],
    ],
    load: async () => ({ run: (await import("./run-control.ts")).logs }),
  },
  {
    path: ["attach"],
    summary: "Watch a run until it ends",
    details: "Of a long run it begins with the last 2,000 events, and says how many came before. With --json it prints all.",
    options: [{ name: "all", summary: "From the first event on" }, json],
    arguments: [optionalRun],
    examples: [["caisson attach", "this folder's newest run"]],
    load: async () => ({ run: (await import("./run-control.ts")).attach }),
  },
  {
    path: ["resume"],
    summary: "Resume a run that was held, interrupted or stopped, or that ended before it was done",
    options: [
      ...boundOptions("For a run that ended: the whole run's new bound of"),
      { name: "unless-ended", summary: "Leave a run alone that has ended" },
      json,
    ],
    arguments: [optionalRun],
    examples: [
      ["caisson resume run_k3v7q2m5x4ab", "from exactly where it was"],
      ["caisson resume --max-steps 100", "this folder's newest run, which had used up its 50 steps"],
    ],
    handlesSignals: true,
    load: async () => ({ run: (await import("./run-control.ts")).resume }),
  },
  {
    path: ["send"],
    summary: "Send a message to an agent, even after its run has ended",
    details: "A run that has ended goes on in the background with the message, with its conversation and its files.",
    options: [
      { name: "steer", summary: "Before its next model call (default)" },
      { name: "queue", summary: "When it would be done otherwise" },
      { name: "interrupt", summary: "Now; interrupts what it is doing" },
      { name: "wait", summary: "Wait until a model call has seen it, and name that call" },
      noResume,
      json,
    ],
    arguments: [runArgument, { name: "TEXT", summary: "the message", repeat: true }],
    examples: [
      ['caisson send run_k3v7q2m5x4ab "the API is in src/http"', "steer it"],
      ['caisson send "now also the tests"', "this folder's newest run, which may have ended"],
    ],
    load: async () => ({ run: (await import("./run-control.ts")).send }),
  },
  {
    path: ["answer"],
    summary: "Answer a run's question",
    options: [
      { name: "question", value: "ID", summary: "Which question (default: the oldest open one)" },
      ...boundOptions("For a budget question: the new bound of"),
      noResume,
      json,
    ],
    arguments: [
      runArgument,
      { name: "ANSWER", summary: "allow, always or deny" },
      { name: "TEXT", summary: "a word to the agent", optional: true, repeat: true },
    ],
    examples: [["caisson answer run_k3v7q2m5x4ab allow", "let it go on"]],
    load: async () => ({ run: (await import("./run-control.ts")).answer }),
  },
  {
    path: ["stop"],
    summary: "End a run",
    options: [json],
    arguments: [{ ...runArgument, repeat: true }],
    examples: [["caisson stop run_k3v7q2m5x4ab", "what it changed stays in its session"]],
    load: async () => ({ run: (await import("./run-control.ts")).stop }),
  },
  {
    path: ["diff"],
    summary: "Show what a run, or a sandbox, changed",
    options: [
      { name: "stat", summary: "Only file names and line counts" },
      { name: "ignored", summary: "Also show new files that your .gitignore files name" },
      { name: "applied", summary: "Show what the last `apply` brought to a folder" },
      {
        name: "at",
        value: "STEP",
        summary: "As it was after this step of the run; files are kept at its beginning and before each further turn",
      },
      noPager,
      json,
    ],
    arguments: [workArgument, { name: "PATH", summary: "only these files or folders", optional: true, repeat: true }],
    examples: [
      ["caisson diff", "what this folder's newest run changed, as a unified diff"],
      ["caisson diff src/parser.ts", "only that file"],
    ],
    load: async () => ({ run: (await import("../sessions/changes-commands.ts")).diff }),
  },
  {
    path: ["apply"],
    summary: "Bring the changes of a run, or of a sandbox, into your folder",
    details:
      "All of the chosen changes or none. Files that tools outside act on (.envrc, .vscode, hooks …) are left out unless they are named.",
    options: [
      { name: "to", value: "DIR", summary: "A folder other than the one it began from" },
      { name: "include-config", summary: "Also take files that tools act on" },
      { name: "ignored", summary: "Also take new files that your .gitignore files name" },
      { name: "force", summary: "Also overwrite files that you changed since the agent started" },
      { name: "leave-out", value: "PATH", repeat: true, summary: "Apply everything but this file or folder" },
      json,
    ],
    arguments: [workArgument, { name: "PATH", summary: "only these files or folders", optional: true, repeat: true }],
    examples: [
      ["caisson apply run_k3v7q2m5x4ab src", "only what changed in src"],
      ["caisson apply --leave-out notes.md", "everything but one file"],
    ],
    load: async () => ({ run: (await import("../sessions/changes-commands.ts")).apply }),
  },
  {
    path: ["branch"],
    summary: "Make a git branch of the changes of a run, or of a sandbox",
    options: [
      { name: "name", value: "NAME", summary: "The branch (default: caisson/SESSION)" },
      { name: "message", short: "m", value: "TEXT", summary: "The commit's message" },
      { name: "to", value: "DIR", summary: "A repository of yours, for a session that began from a git address" },
      { name: "include-config", summary: "Also take files that tools act on" },
      json,
    ],
    arguments: [workArgument],
    examples: [['caisson branch --name fix/parser -m "Fix the parser"', "your work tree stays as it is"]],
    load: async () => ({ run: (await import("../sessions/changes-commands.ts")).branch }),
  },
  {
    path: ["discard"],
    summary: "Discard what a run changed",
    options: [force, yes, json],
    arguments: [optionalRun],
    examples: [["caisson discard run_k3v7q2m5x4ab", "its session and files are removed; the log stays"]],
    load: async () => ({ run: (await import("../sessions/session-commands.ts")).discard }),
  },
  ...sessionCommands,
  ...agentCommands,
];
