import type { ArgumentSpec, CommandSpec } from "../command.ts";
import { ownerOption } from "../options/list-options.ts";
import { jsonOption as json } from "../options/runtime-options.ts";

const mergeArgument: ArgumentSpec = { name: "MERGE", summary: "a merge's id, or the beginning of it; see `caisson merge ls`" };

export const mergeCommands: readonly CommandSpec[] = [
  {
    path: ["merge"],
    summary: "Combine the changes of several runs in one session",
    details:
      "Of runs or sessions that began at the same place. Git merges them inside a sandbox, those first that conflict least; what does not go together is resolved by an agent or by you.\nExit code: 0 merged, 1 not merged, 2 waits for you, 125 when Caisson itself failed.",
    options: [
      {
        name: "conflicts",
        value: "HOW",
        summary: "What to do about conflicts: ask you (default), let an agent resolve them, or stop",
        choices: ["ask", "agent", "stop"],
      },
      { name: "agent", value: "AGENT", summary: "Who resolves them (default: the built-in merger)" },
      { name: "model", value: "NAME", summary: "With this model" },
      { name: "name", value: "NAME", summary: "What the session with the result is to be called" },
      { name: "detach", short: "d", summary: "Leave it to the station; prints the merge's id" },
      json,
    ],
    arguments: [{ name: "RUN|SESSION", summary: "two or more, by id or name", repeat: true, completes: ["run", "session"] }],
    examples: [
      ["caisson merge run_k3v run_x5a --name both", "then: caisson diff both, caisson apply both"],
      ["caisson merge one two three --conflicts agent", "the built-in merger resolves what conflicts, and is checked"],
    ],
    load: async () => ({ run: (await import("./merge-commands.ts")).merge }),
  },
  {
    path: ["merge", "ls"],
    summary: "List merges",
    options: [ownerOption, json],
    arguments: [],
    examples: [["caisson merge ls", ""]],
    load: async () => ({ run: (await import("./merge-commands.ts")).ls }),
  },
  {
    path: ["merge", "show"],
    summary: "Show a merge: its order, what is in, what has to be resolved",
    options: [json],
    arguments: [mergeArgument],
    examples: [["caisson merge show mrg_k3v", ""]],
    load: async () => ({ run: (await import("./merge-commands.ts")).show }),
  },
  {
    path: ["merge", "resume"],
    summary: "Continue a merge that waits for you, was paused, or whose process died",
    details:
      "One that waits for you names the session in which to resolve the conflict, by a run, a chat or a shell there; what is found in it is checked. --take takes one side of a file as it is.",
    options: [
      { name: "take", value: "PATH=SIDE", repeat: true, summary: "Of this file take `merged` (what was merged before) or `theirs`" },
      { name: "agent", summary: "Let the agent resolve it" },
      { name: "detach", short: "d", summary: "Leave it to the station" },
      json,
    ],
    arguments: [mergeArgument],
    examples: [["caisson merge resume mrg_k3v --take src/a.ts=theirs", ""]],
    load: async () => ({ run: (await import("./merge-commands.ts")).resume }),
  },
  {
    path: ["merge", "cancel"],
    summary: "End a merge; what it made on the way is removed",
    options: [json],
    arguments: [mergeArgument],
    examples: [["caisson merge cancel mrg_k3v", ""]],
    load: async () => ({ run: (await import("./merge-commands.ts")).cancel }),
  },
  {
    path: ["merge", "pause"],
    summary: "Pause a merge: no new step begins until it is resumed",
    options: [json],
    arguments: [mergeArgument],
    examples: [["caisson merge pause mrg_k3v", ""]],
    load: async () => ({ run: (await import("./merge-commands.ts")).pause }),
  },
  {
    path: ["merge", "rm"],
    summary: "Forget merges that are over; the sessions with their results stay",
    options: [],
    arguments: [{ ...mergeArgument, repeat: true }],
    examples: [["caisson merge rm mrg_k3v", ""]],
    load: async () => ({ run: (await import("./merge-commands.ts")).remove }),
  },
];
