import type { ArgumentDefinition, OptionDefinition } from "../command.ts";
import { defineCommands } from "../define-command.ts";
import { labelsOption, ownerOption, sinceOption } from "../options/list-options.ts";
import { jsonOption, runtimeOption } from "../options/runtime-options.ts";
import { sandboxOptions } from "../options/sandbox-options.ts";
import { workspaceOptions } from "../options/workspace-options.ts";
import { imageCommands } from "./define-image-commands.ts";

/** Options for everything about a new sandbox; every command that creates one has them. */
export const newSandboxOptions: readonly OptionDefinition[] = [
  runtimeOption,
  { name: "name", value: "NAME", summary: "Name the sandbox; commands accept the name instead of its id" },
  ...workspaceOptions,
  ...sandboxOptions,
];

const processOptions: readonly OptionDefinition[] = [
  {
    name: "sandbox",
    short: "s",
    value: "SANDBOX",
    summary: "Use this sandbox, by id or name, instead of a new one",
    completes: ["sandbox"],
  },
  { name: "cwd", value: "PATH", summary: "Start in this folder inside (default /workspace)" },
  { name: "user", short: "u", value: "USER", summary: "Run as user (default), root (with --allow-root) or a uid" },
  { name: "keep", summary: "Keep the sandbox afterwards, and print its id on stderr" },
];

const sandboxArgument: ArgumentDefinition = {
  name: "SANDBOX",
  summary: "a sandbox's id, an id prefix, or its name; see `caisson sandbox ls`",
  completes: ["sandbox"],
};

const verbs = () => import("./sandbox-commands.ts");

export const sandboxCommands = [
  ...defineCommands([
    {
      path: ["exec"],
      summary: "Run a command in a sandbox",
      details: [
        "The current folder is at /workspace, copy-on-write: the command's changes stay inside.",
        "Exit code: the command's own; 128+N if signal N ended it, 124 after --timeout, 137 out of memory,",
        "153 past --output-max, 126 if it is not executable, 127 if it does not exist, 125 if Caisson itself failed.",
      ].join("\n"),
      options: [
        ...processOptions,
        { name: "interactive", short: "i", summary: "Pass on keyboard input; without it, a command started at a terminal has none" },
        { name: "tty", short: "t", summary: "Give the command a terminal with keyboard input" },
        {
          name: "detach",
          short: "d",
          summary: "Leave the command running in a kept sandbox, and print its id; `caisson logs` shows the output",
        },
        {
          name: "timeout",
          value: "TIME",
          summary: "End the command after this long, such as 30s or 5m (default 30m; none with --detach)",
        },
        { name: "quiet", short: "q", summary: "Print only errors to stderr, besides the command's own output" },
        { name: "json", summary: "Print events as JSON lines instead of the output" },
        ...newSandboxOptions,
      ],
      arguments: [{ name: "COMMAND", summary: "the program and its arguments", repeat: true }],
      takesCommand: true,
      handlesSignals: true,
      examples: [
        ["caisson exec -- python3 script.py", "run a script from this folder; its changes stay inside"],
        ["caisson exec --workspace .:rw -- make", "let it change this folder"],
        ["caisson exec -d --name web -- python3 -m http.server", "in the background; then: caisson logs -f web, caisson rm web"],
        ["caisson exec --memory 512m --timeout 30s -- node untrusted.js", "with limits"],
        ["caisson exec --network registries -- npm install", "package registries only, through a cache"],
        ["caisson exec --network github.com --secret 'GITHUB_TOKEN@github.com;git' -- git push", "with a token that stays outside"],
        ["tar c . | caisson exec --no-workspace -- tar t", "standard input and output are streams"],
      ],
      load: async () => (await import("./exec.ts")).runExec,
    },
    {
      path: ["shell"],
      summary: "Start an interactive shell in a sandbox",
      handlesSignals: true,
      options: [...processOptions, ...newSandboxOptions],
      examples: [
        ["caisson shell", "a throw-away shell on this folder"],
        ["caisson shell --sandbox sb_k3v7q2m5x4ab", "in a kept sandbox"],
      ],
      load: async () => (await import("./shell.ts")).runShell,
    },
    {
      path: ["sandbox", "create"],
      summary: "Create a sandbox, keep it, and print its id",
      handlesSignals: true,
      options: [jsonOption, ...newSandboxOptions, { name: "label", value: "K=V", repeat: true, summary: "Label the sandbox" }],
      examples: [
        ["id=$(caisson sandbox create)", "then: caisson exec --sandbox $id -- COMMAND"],
        ["caisson sandbox create --name build", "then: caisson exec --sandbox build -- COMMAND"],
      ],
      load: async () => (await import("./create-sandbox.ts")).createSandbox,
    },
    {
      path: ["sandbox", "ls"],
      summary: "List sandboxes",
      options: [labelsOption, ownerOption, sinceOption, jsonOption],
      examples: [["caisson sandbox ls --json", "one JSON array"], "caisson sandbox ls --label team=parsers"],
      load: async () => (await verbs()).listSandboxes,
    },
    {
      path: ["sandbox", "stats"],
      summary: "Show the resource usage of sandboxes",
      arguments: [{ ...sandboxArgument, repeat: true }],
      examples: ["caisson sandbox stats sb_k3v7q2m5x4ab"],
      load: async () => (await verbs()).showStats,
    },
    {
      path: ["stats"],
      summary: "Show the resource usage of this machine, or of sandboxes",
      arguments: [{ ...sandboxArgument, optional: true, repeat: true }],
      examples: [["caisson stats", "processors, memory, disk, sandboxes, runs and the pool"]],
      load: async () => (await verbs()).showStats,
    },
    {
      path: ["sandbox", "pause"],
      summary: "Freeze every process of a sandbox",
      options: [jsonOption, { name: "to-disk", summary: "Store the processes on the disk and end them; the pause survives a reboot" }],
      arguments: [{ ...sandboxArgument, repeat: true }],
      examples: ["caisson sandbox pause sb_k3v7q2m5x4ab", ["caisson sandbox pause --to-disk sb_k3v7q2m5x4ab", "free its memory"]],
      load: async () => (await verbs()).pauseSandboxes,
    },
    {
      path: ["sandbox", "resume"],
      summary: "Resume a paused sandbox",
      arguments: [{ ...sandboxArgument, repeat: true }],
      examples: ["caisson sandbox resume sb_k3v7q2m5x4ab"],
      load: async () => (await verbs()).resumeSandboxes,
    },
    {
      path: ["sandbox", "rm"],
      summary: "Stop and remove sandboxes",
      details: "Changes in a sandbox's copy of a folder are lost: it counts them, and asks you.",
      options: [
        { name: "all", summary: "Remove all sandboxes" },
        { name: "yes", short: "y", summary: "Do not ask, even about changed files" },
        jsonOption,
      ],
      arguments: [{ ...sandboxArgument, optional: true, repeat: true }],
      examples: ["caisson sandbox rm --all"],
      load: async () => (await verbs()).removeSandboxes,
    },
    {
      path: ["sandbox", "snapshot"],
      summary: "Save a sandbox's files as a snapshot",
      options: [
        jsonOption,
        { name: "name", value: "NAME", summary: "Name the snapshot; commands accept the name instead of its id" },
        { name: "memory", summary: "Store the processes too; they continue in each sandbox from the snapshot" },
      ],
      arguments: [sandboxArgument],
      examples: [["caisson exec --snapshot $(caisson sandbox snapshot sb_k3v7q2m5x4ab) -- ls", "start from it"]],
      load: async () => (await verbs()).snapshotSandbox,
    },
    {
      path: ["sandbox", "fork"],
      summary: "Create a sandbox from another one's files",
      options: [jsonOption, { name: "memory", summary: "Continue the processes in the fork too" }],
      arguments: [sandboxArgument],
      examples: [["caisson sandbox fork sb_k3v7q2m5x4ab", "prints the new sandbox's id"]],
      load: async () => (await verbs()).forkSandbox,
    },
    {
      path: ["snapshot", "ls"],
      summary: "List snapshots",
      examples: ["caisson snapshot ls"],
      load: async () => (await verbs()).listSnapshots,
    },
    {
      path: ["snapshot", "du"],
      summary: "Show the disk usage of snapshots and of earlier states of sessions",
      details: "OWN is what removing it would free; SHARED is what others need as well.",
      options: [jsonOption],
      arguments: [
        {
          name: "SNAPSHOT",
          summary: "a snapshot or a session, by id or name (default: all)",
          completes: ["snapshot", "session"],
          optional: true,
        },
      ],
      examples: ["caisson snapshot du"],
      load: async () => (await import("../machine/df.ts")).runSnapshotDu,
    },
    {
      path: ["snapshot", "rm"],
      summary: "Remove snapshots",
      arguments: [
        {
          name: "SNAPSHOT",
          summary: "a snapshot's id, an id prefix, or its name; see `caisson snapshot ls`",
          completes: ["snapshot"],
          repeat: true,
        },
      ],
      examples: ["caisson snapshot rm sn_k3v7q2m5x4ab"],
      load: async () => (await verbs()).removeSnapshots,
    },
  ]),
  ...imageCommands,
  ...defineCommands([
    {
      path: ["cp"],
      summary: "Copy files into and out of a sandbox",
      details:
        "One side is SANDBOX:/path; the other is a local path, or - for a tar archive on standard input or output.\nLinks that lead out of a copied folder and names that are not UTF-8 are left out, and listed on stderr.",
      options: [
        { name: "user", short: "u", value: "USER", summary: "Read and write inside as this user" },
        {
          name: "max-size",
          value: "SIZE",
          summary: "Copy out at most this much (default 16g, and never more than the disk can hold)",
        },
        jsonOption,
      ],
      arguments: [
        { name: "SOURCE", summary: "what to copy", completes: ["sandbox", "file"] },
        { name: "TARGET", summary: "where to", completes: ["sandbox", "file"] },
      ],
      examples: [
        "caisson cp data.csv sb_k3v7q2m5x4ab:/workspace/",
        ["caisson cp sb_k3v7q2m5x4ab:/workspace/out ./out", "a folder"],
        "caisson cp sb_k3v7q2m5x4ab:/workspace - | tar t",
      ],
      load: async () => (await import("./cp.ts")).runCp,
    },
  ]),
];
