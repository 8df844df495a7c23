import type { CommandSpec, OptionSpec } from "../command.ts";

const json: OptionSpec = { name: "json", summary: "Print JSON" };
const webhook = { name: "NAME|ID", summary: "see `caisson webhook ls`" };
const commands = () => import("./webhook-commands.ts");

export const webhookCommands: readonly CommandSpec[] = [
  {
    path: ["webhook", "create"],
    summary: "Have a station post what happens in runs to an address, and print the secret of its signatures once",
    details: [
      "Each event is a CloudEvent, signed as the Standard Webhooks are. What is not taken is tried again for about a day and a half.",
      "Events are sent while a station serves (`caisson up`); those that happen in between are sent later.",
    ].join("\n"),
    options: [
      {
        name: "event",
        value: "TYPE",
        summary: "A type, run.* for a family, or * (default: created, paused, asked, ended, escalated)",
        repeat: true,
      },
      { name: "allow-private", summary: "Also to private addresses and this machine, and without TLS" },
      json,
    ],
    arguments: [
      { name: "NAME", summary: "what you will know it by" },
      { name: "URL", summary: "where to post" },
    ],
    examples: [["caisson webhook create chat https://chat.example.com/hooks/7 --event run.ended", ""]],
    load: async () => ({ run: (await commands()).create }),
  },
  {
    path: ["webhook", "ls"],
    summary: "List webhooks",
    options: [json],
    arguments: [],
    examples: [["caisson webhook ls", ""]],
    load: async () => ({ run: (await commands()).list }),
  },
  {
    path: ["webhook", "rm"],
    summary: "Remove webhooks with their deliveries",
    options: [],
    arguments: [{ ...webhook, repeat: true }],
    examples: [["caisson webhook rm chat", ""]],
    load: async () => ({ run: (await commands()).remove }),
  },
  {
    path: ["webhook", "pause"],
    summary: "Send nothing to a webhook until it is resumed",
    options: [],
    arguments: [webhook],
    examples: [["caisson webhook pause chat", ""]],
    load: async () => ({ run: (await commands()).pause }),
  },
  {
    path: ["webhook", "resume"],
    summary: "Send a webhook what it missed while paused, and continue",
    options: [],
    arguments: [webhook],
    examples: [["caisson webhook resume chat", ""]],
    load: async () => ({ run: (await commands()).resume }),
  },
  {
    path: ["webhook", "deliveries"],
    summary: "What was sent to a webhook, what is tried again, and what was given up",
    options: [
      { name: "state", value: "STATE", summary: "delivered, retrying or dead", choices: ["delivered", "retrying", "dead"] },
      { name: "limit", value: "N", summary: "How many at most (default 100)" },
      json,
    ],
    arguments: [webhook],
    examples: [["caisson webhook deliveries chat --state dead", ""]],
    load: async () => ({ run: (await commands()).deliveries }),
  },
  {
    path: ["webhook", "replay"],
    summary: "Send a delivery again, or all that were given up",
    options: [json],
    arguments: [webhook, { name: "DELIVERY", summary: "see `caisson webhook deliveries`", optional: true }],
    examples: [["caisson webhook replay chat", ""]],
    load: async () => ({ run: (await commands()).replay }),
  },
  {
    path: ["webhook", "test"],
    summary: "Send a webhook a test message, and say what it answered",
    options: [json],
    arguments: [webhook],
    examples: [["caisson webhook test chat", ""]],
    load: async () => ({ run: (await commands()).test }),
  },
];
