import type { ArgumentDefinition, OptionDefinition } from "../command.ts";
import { defineCommands } from "../define-command.ts";
import { ownerOption, sinceOption } from "../options/list-options.ts";
import { jsonOption as json } from "../options/runtime-options.ts";

const sessionArgument: ArgumentDefinition = {
  name: "SESSION",
  summary: "a session's name; see `caisson session ls`",
  completes: ["session"],
};
export const force: OptionDefinition = { name: "force", summary: "Proceed even if a run may still be working in it" };
export const yes: OptionDefinition = { name: "yes", short: "y", summary: "Do not ask, even about unapplied changes" };

export const sessionCommands = defineCommands([
  {
    path: ["session", "ls"],
    summary: "List sessions",
    options: [ownerOption, sinceOption, json],
    examples: ["caisson session ls --json"],
    load: async () => (await import("./session-commands.ts")).ls,
  },
  {
    path: ["session", "info"],
    summary: "Show a session: workspace, lock, runs, history",
    arguments: [sessionArgument],
    examples: ["caisson session info fix-parser"],
    load: async () => (await import("./session-commands.ts")).info,
  },
  {
    path: ["session", "fork"],
    summary: "Create a session from another one's files",
    details:
      "The two are independent from then on. RUN@STEP means the files after that step. Caisson stores the files at the start and end of each turn.",
    options: [{ name: "name", value: "NAME", summary: "Name of the new session (default: only an id)" }, json],
    arguments: [{ ...sessionArgument, name: "RUN", summary: "a run or a session, by id or name; @STEP for a step of it" }],
    examples: ["caisson session fork fix-parser --name another-way", ["caisson session fork run_k3v@4", "the files after step four"]],
    load: async () => (await import("./session-commands.ts")).fork,
  },
  {
    path: ["session", "refresh"],
    summary: "Fetch a session's repository and check it out again",
    details:
      "The session continues at the new tip of its branch. It is refused while the session has changes, ignored files or\nown commits; --discard removes them. Files in the home folder stay. A session on a folder needs no refresh.",
    options: [
      { name: "ref", value: "REF", summary: "Branch, tag or commit to follow from now on" },
      { name: "discard", summary: "Remove the session's own changes and commits" },
      json,
    ],
    arguments: [{ ...sessionArgument, summary: "a run or a session, by id or name" }],
    examples: [
      "caisson session refresh fix-parser",
      ["caisson session refresh fix-parser --ref v2 --discard", "another version, without the work so far"],
    ],
    load: async () => (await import("./session-commands.ts")).refresh,
  },
  {
    path: ["session", "rm"],
    summary: "Remove a session and its files",
    options: [force, yes, json],
    arguments: [{ ...sessionArgument, repeat: true }],
    examples: ["caisson session rm fix-parser"],
    load: async () => (await import("./session-commands.ts")).rm,
  },
  {
    path: ["session", "cleanup"],
    summary: "Remove sessions that were not used for a while",
    options: [
      { name: "older-than", value: "TIME", summary: "Unused for this long, such as 7d (default) or 12h" },
      { name: "dry-run", summary: "List them, and stop" },
      yes,
      json,
    ],
    examples: [["caisson session cleanup --older-than 7d --dry-run", "preview"]],
    load: async () => (await import("./session-commands.ts")).cleanup,
  },
  {
    path: ["session", "unlock"],
    summary: "Free a session whose run is dead",
    options: [force, json],
    arguments: [sessionArgument],
    examples: ["caisson session unlock fix-parser"],
    load: async () => (await import("./session-commands.ts")).unlock,
  },
]);
