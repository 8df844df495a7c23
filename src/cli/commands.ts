import { bestCommands } from "./bests/define-best-commands.ts";
import { chatCommands } from "./chat/define-chat-commands.ts";
import type { CommandDefinition } from "./command.ts";
import { defineCommand } from "./define-command.ts";
import { labelCommand } from "./machine/define-label-command.ts";
import { machineCommands } from "./machine/define-machine-commands.ts";
import { storageCommands } from "./machine/define-storage-commands.ts";
import { mcpCommand } from "./mcp/define-mcp-command.ts";
import { mergeCommands } from "./merges/define-merge-commands.ts";
import { netCommands } from "./network/define-net-commands.ts";
import { previewCommands } from "./network/define-preview-commands.ts";
import { forkCommands } from "./runs/define-fork-commands.ts";
import { queueCommands } from "./runs/define-queue-commands.ts";
import { runCommands } from "./runs/define-run-commands.ts";
import { sandboxCommands } from "./sandboxes/define-sandbox-commands.ts";
import { contextCommands } from "./server/define-context-commands.ts";
import { guardianCommands } from "./server/define-guardian-commands.ts";
import { healthCommands } from "./server/define-health-commands.ts";
import { inboxCommand } from "./server/define-inbox-command.ts";
import { secretCommands } from "./server/define-secret-commands.ts";
import { stationCommands } from "./server/define-station-commands.ts";
import { webhookCommands } from "./server/define-webhook-commands.ts";
import { undoCommand } from "./sessions/define-undo-command.ts";
import { shipCommands } from "./ships/define-ship-commands.ts";
import { specCommands } from "./specs/define-spec-commands.ts";
import { templateCommands } from "./templates/define-template-commands.ts";
import { workflowCommands } from "./workflows/define-workflow-commands.ts";

/** Every command, in the order of help. */
export const commands: readonly CommandDefinition[] = [
  ...chatCommands,
  ...runCommands,
  ...queueCommands,
  labelCommand,
  ...forkCommands,
  undoCommand,
  ...specCommands,
  ...sandboxCommands,
  ...templateCommands,
  ...mergeCommands,
  ...bestCommands,
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
  defineCommand({
    path: ["completion"],
    summary: "Print a completion script for your shell",
    options: [
      {
        name: "words",
        value: "KINDS",
        summary: "List completions of these kinds instead: sandbox, run, session, snapshot (used by the scripts)",
      },
    ],
    arguments: [{ name: "SHELL", summary: "bash, zsh or fish", optional: true }],
    examples: [["source <(caisson completion bash)", "add this line to your ~/.bashrc"]],
    load: async () => (await import("./completion.ts")).completionOf(commands),
  }),
];
