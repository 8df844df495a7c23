import { defineCommands } from "../define-command.ts";
import { chatOptions } from "./chat-options.ts";

export const chatCommands = defineCommands([
  {
    path: ["chat"],
    summary: "Chat with an agent that works on this folder (also: `caisson` alone)",
    details: [
      "The agent works in a sandbox on a copy-on-write view of the folder; your files change only when you /apply.",
      "Enter sends. Ctrl-C interrupts the agent; press it again to stop the run. Ctrl-D leaves. /help lists the commands.",
    ].join("\n"),
    options: chatOptions,
    arguments: [{ name: "AGENT", summary: "an agent's name (default: coder)", optional: true }],
    examples: [
      ["caisson chat", "with the built-in coder, in this folder"],
      ["caisson chat reviewer --model anthropic/claude-sonnet-4-5", "with another agent"],
      ["caisson chat --continue", "continue the last chat"],
    ],
    handlesSignals: true,
    load: async () => (await import("./chat.ts")).runChat,
  },
]);
