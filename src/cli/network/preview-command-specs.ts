import type { ArgumentSpec, CommandSpec, OptionSpec } from "../command.ts";

const json: OptionSpec = { name: "json", summary: "Print JSON lines" };
const target: ArgumentSpec = { name: "RUN|SANDBOX", summary: "a run or a sandbox, by id or name", completes: ["sandbox", "run"] };

export const previewCommands: readonly CommandSpec[] = [
  {
    path: ["open"],
    summary: "Open a sandbox's port in your browser",
    details:
      "Prints a URL that nobody can guess, and serves it on this machine; it stops working after Ctrl-C.\nWebSockets, streams and live reload work. Whoever has the URL, and is on this machine, sees the port.",
    options: [{ name: "listen", value: "PORT", summary: "The port of this machine (default: any that is free)" }, json],
    arguments: [target, { name: "PORT", summary: "the port inside" }],
    handlesSignals: true,
    examples: [["caisson open run_k3v7q2m5x4ab 5173", "also before anything listens there"]],
    load: async () => ({ run: (await import("./preview-commands.ts")).open }),
  },
  {
    path: ["forward"],
    summary: "Forward TCP ports of a sandbox to this machine",
    details: "Until Ctrl-C. Without a token: every program of this machine can use them, and with --listen-host others, too.",
    options: [{ name: "listen-host", value: "ADDRESS", summary: "Where to listen (default 127.0.0.1)" }, json],
    arguments: [
      target,
      { name: "PORT[:LOCAL]", summary: "the port inside, and the one outside (default: the same, or any if that is taken)", repeat: true },
    ],
    handlesSignals: true,
    examples: [["caisson forward sb_k3v7q2m5x4ab 5432 6379:16379", "a database and a cache"]],
    load: async () => ({ run: (await import("./preview-commands.ts")).forward }),
  },
  {
    path: ["ports"],
    summary: "List the ports a sandbox listens on",
    options: [{ name: "watch", short: "w", summary: "Keep watching, and report ports that open and close" }, json],
    arguments: [target],
    handlesSignals: true,
    examples: [["caisson ports run_k3v7q2m5x4ab --watch", ""]],
    load: async () => ({ run: (await import("./preview-commands.ts")).ports }),
  },
];
