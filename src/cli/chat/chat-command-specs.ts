import type { CommandSpec } from "../command.ts";
import { chatOptions } from "./chat-options.ts";

export const chatCommands: readonly CommandSpec[] = [
  {
    path: ["chat"],
    summary: "Talk to an agent that works on this folder; `caisson` alone does the same",
    details: [
      "The agent works in a sandbox on a copy-on-write view of the folder; nothing outside changes until you /apply it.",
      "Enter sends; Ctrl-C holds the agent, and a second one stops it; Ctrl-D leaves. /help lists the commands.",
    ].join("\n"),
    options: chatOptions,
    arguments: [{ name: "AGENT", summary: "an agent's name (default: coder)", optional: true }],
    examples: [
      ["caisson chat", "with the built-in coder, in this folder"],
      ["caisson chat reviewer --model anthropic/claude-sonnet-4-5", "with another agent"],
      ["caisson chat --continue", "where the last one was left"],
    ],
    handlesSignals: true,
    load: () => import("./chat.ts"),
  },
];
