import { deliveryStates } from "../../contract/webhook/delivery-states.ts";
import { defineCommands } from "../define-command.ts";
import { jsonOption as json } from "../options/runtime-options.ts";

const webhook = { name: "NAME|ID", summary: "see `caisson webhook ls`" };
const commands = () => import("./webhook-commands.ts");

export const webhookCommands = defineCommands([
  {
    path: ["webhook", "create"],
    summary: "Create a webhook that receives run events, and print its signing secret once",
    details: [
      "Each event is a CloudEvent, signed as Standard Webhooks specify. Failed deliveries are retried for about a day and a half.",
      "Events are delivered while a station runs (`caisson up`), including those that occurred while none did.",
    ].join("\n"),
    options: [
      {
        name: "event",
        value: "TYPE",
        summary: "Event type, run.* for a family, or * (default: created, paused, asked, ended, escalated)",
        repeat: true,
      },
      { name: "allow-private", summary: "Allow private addresses, this machine, and URLs without TLS" },
      json,
    ],
    arguments: [
      { name: "NAME", summary: "a name for the webhook" },
      { name: "URL", summary: "the URL that receives the events" },
    ],
    examples: ["caisson webhook create chat https://chat.example.com/hooks/7 --event run.ended"],
    load: async () => (await commands()).create,
  },
  {
    path: ["webhook", "ls"],
    summary: "List webhooks",
    examples: ["caisson webhook ls"],
    load: async () => (await commands()).listWebhooks,
  },
  {
    path: ["webhook", "rm"],
    summary: "Remove webhooks with their deliveries",
    arguments: [{ ...webhook, repeat: true }],
    examples: ["caisson webhook rm chat"],
    load: async () => (await commands()).removeWebhooks,
  },
  {
    path: ["webhook", "pause"],
    summary: "Hold a webhook's deliveries until it is resumed",
    arguments: [webhook],
    examples: ["caisson webhook pause chat"],
    load: async () => (await commands()).pause,
  },
  {
    path: ["webhook", "resume"],
    summary: "Resume a webhook, and deliver what it missed",
    arguments: [webhook],
    examples: ["caisson webhook resume chat"],
    load: async () => (await commands()).resume,
  },
  {
    path: ["webhook", "deliveries"],
    summary: "List a webhook's deliveries: delivered, retrying or dead",
    options: [
      { name: "state", value: "STATE", summary: "delivered, retrying or dead", choices: deliveryStates },
      { name: "limit", value: "N", summary: "Show at most this many (default 100)" },
      json,
    ],
    arguments: [webhook],
    examples: ["caisson webhook deliveries chat --state dead"],
    load: async () => (await commands()).listDeliveries,
  },
  {
    path: ["webhook", "replay"],
    summary: "Repeat a delivery, or all dead ones",
    arguments: [webhook, { name: "DELIVERY", summary: "see `caisson webhook deliveries`", optional: true }],
    examples: ["caisson webhook replay chat"],
    load: async () => (await commands()).replay,
  },
  {
    path: ["webhook", "test"],
    summary: "Send a test message to a webhook, and print the response",
    arguments: [webhook],
    examples: ["caisson webhook test chat"],
    load: async () => (await commands()).test,
  },
]);
