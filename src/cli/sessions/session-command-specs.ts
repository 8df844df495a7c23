import type { ArgumentSpec, CommandSpec, OptionSpec } from "../command.ts";
import { ownerOption, sinceOption } from "../options/list-options.ts";
import { jsonOption as json } from "../options/runtime-options.ts";

const sessionArgument: ArgumentSpec = { name: "SESSION", summary: "a session's name, see `caisson session ls`", completes: ["session"] };
export const force: OptionSpec = { name: "force", summary: "Even when somebody may still be working in it" };
export const yes: OptionSpec = { name: "yes", short: "y", summary: "Do not ask, even when changes were not applied" };

export const sessionCommands: readonly CommandSpec[] = [
  {
    path: ["session", "ls"],
    summary: "List sessions",
    options: [ownerOption, sinceOption, json],
    arguments: [],
    examples: [["caisson session ls --json", ""]],
    load: async () => ({ run: (await import("./session-commands.ts")).ls }),
  },
  {
    path: ["session", "info"],
    summary: "Show a session: workspace, lock, runs, history",
    options: [json],
    arguments: [sessionArgument],
    examples: [["caisson session info fix-parser", ""]],
    load: async () => ({ run: (await import("./session-commands.ts")).info }),
  },
  {
    path: ["session", "fork"],
    summary: "Make a new session with the files of another",
    details:
      "The two have nothing in common from then on. RUN@STEP is the files as they were after that step: those of the beginning and of each turn's end are kept.",
    options: [{ name: "name", value: "NAME", summary: "What it is to be called; otherwise it has an id alone" }, json],
    arguments: [{ ...sessionArgument, name: "RUN", summary: "a run or a session, by id or name; @STEP for a step of it" }],
    examples: [
      ["caisson session fork fix-parser --name another-way", ""],
      ["caisson session fork run_k3v@4", "as it was after four steps"],
    ],
    load: async () => ({ run: (await import("./session-commands.ts")).fork }),
  },
  {
    path: ["session", "rm"],
    summary: "Remove a session and its files",
    options: [force, yes, json],
    arguments: [{ ...sessionArgument, repeat: true }],
    examples: [["caisson session rm fix-parser", ""]],
    load: async () => ({ run: (await import("./session-commands.ts")).rm }),
  },
  {
    path: ["session", "cleanup"],
    summary: "Remove sessions that have not been used for a while",
    options: [
      { name: "older-than", value: "TIME", summary: "How long, such as 7d (default) or 12h" },
      { name: "dry-run", summary: "Only list them" },
      yes,
      json,
    ],
    arguments: [],
    examples: [["caisson session cleanup --older-than 7d --dry-run", "see what would go"]],
    load: async () => ({ run: (await import("./session-commands.ts")).cleanup }),
  },
  {
    path: ["session", "unlock"],
    summary: "Free a session whose run is dead",
    options: [force, json],
    arguments: [sessionArgument],
    examples: [["caisson session unlock fix-parser", ""]],
    load: async () => ({ run: (await import("./session-commands.ts")).unlock }),
  },
];
