import type { ArgumentDefinition, OptionDefinition } from "../command.ts";
import { defineCommands } from "../define-command.ts";

const json: OptionDefinition = { name: "json", summary: "Print JSON lines" };
const target: ArgumentDefinition = { name: "RUN|SANDBOX", summary: "a run or a sandbox, by id or name", completes: ["sandbox", "run"] };

export const previewCommands = defineCommands([
  {
    path: ["open"],
    summary: "Open a sandbox's port in your browser",
    details:
      "Prints an unguessable URL, and serves it on this machine until Ctrl-C.\nWebSockets, streams and live reload work. Anyone on this machine who has the URL can see the port.",
    options: [{ name: "listen", value: "PORT", summary: "Local port (default: a free one)" }, json],
    arguments: [target, { name: "PORT", summary: "the port inside" }],
    handlesSignals: true,
    examples: [["caisson open run_k3v7q2m5x4ab 5173", "works even before anything listens there"]],
    load: async () => (await import("./preview-commands.ts")).open,
  },
  {
    path: ["forward"],
    summary: "Forward TCP ports of a sandbox to this machine",
    details:
      "Runs until Ctrl-C. There is no authentication: every program on this machine can connect, and with --listen-host other machines can, too.",
    options: [{ name: "listen-host", value: "ADDRESS", summary: "Local address to listen on (default 127.0.0.1)" }, json],
    arguments: [
      target,
      {
        name: "PORT[:LOCAL]",
        summary: "the port inside, and the local one (default: the same, or a free one if that is taken)",
        repeat: true,
      },
    ],
    handlesSignals: true,
    examples: [["caisson forward sb_k3v7q2m5x4ab 5432 6379:16379", "a database and a cache"]],
    load: async () => (await import("./preview-commands.ts")).forward,
  },
  {
    path: ["ports"],
    summary: "List the ports a sandbox listens on",
    options: [{ name: "watch", short: "w", summary: "Keep watching for ports that open and close" }, json],
    arguments: [target],
    handlesSignals: true,
    examples: ["caisson ports run_k3v7q2m5x4ab --watch"],
    load: async () => (await import("./preview-commands.ts")).ports,
  },
]);
