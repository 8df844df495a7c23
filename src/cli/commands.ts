import { chatCommands } from "./chat/chat-command-specs.ts";
import type { ArgumentSpec, CommandSpec, OptionSpec } from "./command.ts";
import { labelCommand } from "./machine/label-command-spec.ts";
import { machineCommands } from "./machine/machine-command-specs.ts";
import { storageCommands } from "./machine/storage-command-specs.ts";
import { mcpCommand } from "./mcp/mcp-command-spec.ts";
import { mergeCommands } from "./merges/merge-command-specs.ts";
import { netCommands } from "./network/net-command-specs.ts";
import { previewCommands } from "./network/preview-command-specs.ts";
import { labelsOption, ownerOption, sinceOption } from "./options/list-options.ts";
import { jsonOption, runtimeOption } from "./options/runtime-options.ts";
import { sandboxOptions } from "./options/sandbox-options.ts";
import { workspaceOptions } from "./options/workspace-options.ts";
import { queueCommands } from "./runs/queue-command-specs.ts";
import { runCommands } from "./runs/run-command-specs.ts";
import { imageCommands } from "./sandboxes/image-command-specs.ts";
import { undoCommand } from "./sessions/undo-command-spec.ts";
import { shipCommands } from "./ships/ship-command-specs.ts";
import { specCommands } from "./specs/spec-command-specs.ts";
import { contextCommands } from "./station/context-command-specs.ts";
import { guardianCommands } from "./station/guardian-command-specs.ts";
import { healthCommands } from "./station/health-command-specs.ts";
import { inboxCommand } from "./station/inbox-command-spec.ts";
import { secretCommands } from "./station/secret-command-specs.ts";
import { stationCommands } from "./station/station-command-specs.ts";
import { webhookCommands } from "./station/webhook-command-specs.ts";
import { workflowCommands } from "./workflows/workflow-command-specs.ts";

/** What a new sandbox is made of; the same wherever one is made. */
export const specOptions: readonly OptionSpec[] = [
  runtimeOption,
  { name: "name", value: "NAME", summary: "A name that stands for the sandbox's id" },
  ...workspaceOptions,
  ...sandboxOptions,
];

const processOptions: readonly OptionSpec[] = [
  {
    name: "sandbox",
    short: "s",
    value: "SANDBOX",
    summary: "Use this sandbox, by its id or name, instead of a new one",
    completes: ["sandbox"],
  },
  { name: "cwd", value: "PATH", summary: "The folder to start in, inside (default /workspace)" },
  { name: "user", short: "u", value: "USER", summary: "user (default), root (with --allow-root) or a uid" },
  { name: "keep", summary: "Keep the sandbox afterwards; its id is printed on stderr" },
];

const sandboxArgument: ArgumentSpec = {
  name: "SANDBOX",
  summary: "a sandbox's id, the beginning of it, or its name; see `caisson sandbox ls`",
  completes: ["sandbox"],
};

export const commands: readonly CommandSpec[] = [
  ...chatCommands,
  ...runCommands,
  ...queueCommands,
  labelCommand,
  undoCommand,
  ...specCommands,
  {
    path: ["exec"],
    summary: "Run a command in a sandbox",
    details: [
      "The current folder is at /workspace, copy-on-write: what the command changes there is not changed outside.",
      "Exit code: the command's own; 128+N when signal N ended it, 124 after --timeout, 137 out of memory,",
      "153 past --output-max, 126 when it is not executable, 127 when there is no such program, 125 when Caisson itself failed.",
    ].join("\n"),
    options: [
      ...processOptions,
      { name: "interactive", short: "i", summary: "Pass on what is typed; without it a command started at a terminal has no input" },
      { name: "tty", short: "t", summary: "Give the command a terminal, and what is typed" },
      {
        name: "detach",
        short: "d",
        summary: "Leave the command running in a sandbox that stays, and print the sandbox's id; `caisson logs` shows its output",
      },
      {
        name: "timeout",
        value: "TIME",
        summary: "End the command after this long, such as 30s or 5m (at most 30m unless set; none with --detach)",
      },
      { name: "quiet", short: "q", summary: "Print nothing of Caisson's own to stderr except errors" },
      { name: "json", summary: "Print events as JSON lines instead of the output" },
      ...specOptions,
    ],
    arguments: [{ name: "COMMAND", summary: "the program and its arguments", repeat: true }],
    takesCommand: true,
    handlesSignals: true,
    examples: [
      ["caisson exec -- python3 script.py", "run a script of this folder; it can change nothing outside"],
      ["caisson exec --workspace .:rw -- make", "let it change this folder"],
      ["caisson exec -d --name web -- python3 -m http.server", "goes on by itself; then: caisson logs -f web, caisson rm web"],
      ["caisson exec --memory 512m --timeout 30s -- node untrusted.js", "with limits"],
      ["caisson exec --network registries -- npm install", "package registries, through a cache, and nothing else"],
      ["caisson exec --network github.com --secret 'GITHUB_TOKEN@github.com;git' -- git push", "with a token that stays outside"],
      ["tar c . | caisson exec --no-workspace -- tar t", "standard input and output are streams"],
    ],
    load: () => import("./sandboxes/exec.ts"),
  },
  {
    path: ["shell"],
    summary: "Start an interactive shell in a sandbox",
    handlesSignals: true,
    options: [...processOptions, ...specOptions],
    arguments: [],
    examples: [
      ["caisson shell", "a throw-away shell on this folder"],
      ["caisson shell --sandbox sb_k3v7q2m5x4ab", "in a sandbox that was kept"],
    ],
    load: () => import("./sandboxes/shell.ts"),
  },
  {
    path: ["sandbox", "create"],
    summary: "Create a sandbox that stays, and print its id",
    handlesSignals: true,
    options: [jsonOption, ...specOptions, { name: "label", value: "K=V", repeat: true, summary: "A label, shown by ls" }],
    arguments: [],
    examples: [
      ["id=$(caisson sandbox create)", "then: caisson exec --sandbox $id -- COMMAND"],
      ["caisson sandbox create --name build", "then: caisson exec --sandbox build -- COMMAND"],
    ],
    load: () => import("./sandboxes/sandbox-create.ts"),
  },
  {
    path: ["sandbox", "ls"],
    summary: "List sandboxes",
    options: [labelsOption, ownerOption, sinceOption, jsonOption],
    arguments: [],
    examples: [
      ["caisson sandbox ls --json", "one JSON array"],
      ["caisson sandbox ls --label team=parsers", ""],
    ],
    load: () => import("./sandboxes/sandbox-list.ts"),
  },
  {
    path: ["sandbox", "stats"],
    summary: "Show what a sandbox uses, as measured by the host",
    options: [jsonOption],
    arguments: [{ ...sandboxArgument, repeat: true }],
    examples: [["caisson sandbox stats sb_k3v7q2m5x4ab", ""]],
    load: () => import("./sandboxes/sandbox-stats.ts"),
  },
  {
    path: ["stats"],
    summary: "Show what the machine has and how busy it is, or what sandboxes use",
    options: [jsonOption],
    arguments: [{ ...sandboxArgument, optional: true, repeat: true }],
    examples: [["caisson stats", "processors, memory, disk, sandboxes, runs and the pool"]],
    load: () => import("./sandboxes/sandbox-stats.ts"),
  },
  {
    path: ["sandbox", "pause"],
    summary: "Freeze every process of a sandbox",
    options: [],
    arguments: [{ ...sandboxArgument, repeat: true }],
    examples: [["caisson sandbox pause sb_k3v7q2m5x4ab", ""]],
    load: async () => (await import("./sandboxes/sandbox-life.ts")).pause,
  },
  {
    path: ["sandbox", "resume"],
    summary: "Resume a paused sandbox",
    options: [],
    arguments: [{ ...sandboxArgument, repeat: true }],
    examples: [["caisson sandbox resume sb_k3v7q2m5x4ab", ""]],
    load: async () => (await import("./sandboxes/sandbox-life.ts")).resume,
  },
  {
    path: ["sandbox", "rm"],
    summary: "End and remove sandboxes",
    details: "Files that changed in a sandbox's copy of a folder go with it: they are counted, and you are asked.",
    options: [
      { name: "all", summary: "All of them" },
      { name: "yes", short: "y", summary: "Do not ask, even when files changed" },
    ],
    arguments: [{ ...sandboxArgument, optional: true, repeat: true }],
    examples: [["caisson sandbox rm --all", ""]],
    load: async () => (await import("./sandboxes/sandbox-life.ts")).remove,
  },
  {
    path: ["sandbox", "snapshot"],
    summary: "Save a sandbox's files as a snapshot",
    options: [jsonOption, { name: "name", value: "NAME", summary: "A name that stands for the snapshot's id" }],
    arguments: [sandboxArgument],
    examples: [["caisson exec --snapshot $(caisson sandbox snapshot sb_k3v7q2m5x4ab) -- ls", "start from it"]],
    load: async () => (await import("./sandboxes/sandbox-life.ts")).snapshot,
  },
  {
    path: ["sandbox", "fork"],
    summary: "Create a sandbox from another's files",
    options: [jsonOption],
    arguments: [sandboxArgument],
    examples: [["caisson sandbox fork sb_k3v7q2m5x4ab", "prints the new one's id"]],
    load: async () => (await import("./sandboxes/sandbox-life.ts")).fork,
  },
  {
    path: ["snapshot", "ls"],
    summary: "List snapshots",
    options: [jsonOption],
    arguments: [],
    examples: [["caisson snapshot ls", ""]],
    load: async () => (await import("./sandboxes/snapshot.ts")).list,
  },
  {
    path: ["snapshot", "rm"],
    summary: "Remove snapshots",
    options: [],
    arguments: [
      {
        name: "SNAPSHOT",
        summary: "a snapshot's id, the beginning of it, or its name; see `caisson snapshot ls`",
        completes: ["snapshot"],
        repeat: true,
      },
    ],
    examples: [["caisson snapshot rm sn_k3v7q2m5x4ab", ""]],
    load: async () => (await import("./sandboxes/snapshot.ts")).remove,
  },
  ...imageCommands,
  {
    path: ["cp"],
    summary: "Copy files into and out of a sandbox",
    details:
      "One side is SANDBOX:/path, the other a path outside or - for a tar archive on standard input or output.\nLinks that lead out of a copied folder, and names that are not UTF-8, are left out and named on stderr.",
    options: [
      { name: "user", short: "u", value: "USER", summary: "Read and write inside as this user" },
      { name: "max-size", value: "SIZE", summary: "The most that is copied out (default 16g, and never more than the disk has room for)" },
    ],
    arguments: [
      { name: "SOURCE", summary: "what to copy", completes: ["sandbox", "file"] },
      { name: "TARGET", summary: "where to", completes: ["sandbox", "file"] },
    ],
    examples: [
      ["caisson cp data.csv sb_k3v7q2m5x4ab:/workspace/", ""],
      ["caisson cp sb_k3v7q2m5x4ab:/workspace/out ./out", "a folder"],
      ["caisson cp sb_k3v7q2m5x4ab:/workspace - | tar t", ""],
    ],
    load: () => import("./sandboxes/cp.ts"),
  },
  ...mergeCommands,
  ...netCommands,
  ...previewCommands,
  ...stationCommands,
  mcpCommand,
  ...healthCommands,
  ...guardianCommands,
  inboxCommand,
  ...shipCommands,
  ...webhookCommands,
  ...workflowCommands,
  ...contextCommands,
  ...secretCommands,
  ...storageCommands,
  ...machineCommands,
  {
    path: ["completion"],
    summary: "Print a completion script for your shell",
    options: [
      {
        name: "words",
        value: "KINDS",
        summary: "Print what a word could be instead: a list of sandbox, run, session, snapshot; this is what the scripts ask for",
      },
    ],
    arguments: [{ name: "SHELL", summary: "bash, zsh or fish", optional: true }],
    examples: [["source <(caisson completion bash)", "put it into your ~/.bashrc"]],
    load: async () => (await import("./completion.ts")).completionOf(commands),
  },
];
