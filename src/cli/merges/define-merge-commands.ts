import { defineCommands } from "../define-command.ts";
import { jobCommands } from "../durable/define-job-commands.ts";
import { ownerOption } from "../options/list-options.ts";
import { jsonOption as json } from "../options/runtime-options.ts";

const commands = () => import("./merge-commands.ts");

const shared = jobCommands({
  verb: "merge",
  argument: { name: "MERGE", summary: "a merge's id, or the beginning of it; see `caisson merge ls`" },
  exampleId: "mrg_k3v",
  commands: {
    ls: { summary: "List merges", options: [ownerOption, json] },
    show: { summary: "Show a merge: its order, what is merged, and open conflicts" },
    resume: {
      summary: "Continue a merge that waits for you, is paused, or lost its process",
      details:
        "A merge that waits for you names a session. Resolve the conflict there by a run, a chat or a shell; the merge checks the result. --take chooses one side of a file unchanged.",
      options: [
        { name: "take", value: "PATH=SIDE", repeat: true, summary: "For this file, take `merged` (merged so far) or `theirs`" },
        { name: "agent", summary: "Let an agent resolve the conflict" },
        { name: "detach", short: "d", summary: "Leave it to the station, and return at once" },
        json,
      ],
      example: "caisson merge resume mrg_k3v --take src/a.ts=theirs",
    },
    cancel: { summary: "Cancel a merge, and remove its intermediate results" },
    pause: { summary: "Pause a merge after its current step" },
    rm: { summary: "Remove finished merges; their result sessions stay" },
  },
  load: async () => (await commands()).mergeKind,
});

export const mergeCommands = defineCommands([
  {
    path: ["merge"],
    summary: "Combine the changes of several runs in one session",
    details:
      "The runs or sessions must have started from the same files. Git merges them inside a sandbox, least conflicting first; an agent or you resolve the conflicts.\nExit code: 0 merged, 1 not merged, 2 waits for you, 125 if Caisson itself failed.",
    options: [
      {
        name: "conflicts",
        value: "HOW",
        summary: "On conflicts: ask you (default), let an agent resolve them, or stop",
        choices: ["ask", "agent", "stop"],
      },
      { name: "agent", value: "AGENT", summary: "Use this agent to resolve conflicts (default: the built-in merger)" },
      { name: "model", value: "NAME", summary: "Use this model for the agent" },
      { name: "name", value: "NAME", summary: "Name of the session with the result" },
      { name: "detach", short: "d", summary: "Leave it to the station, and print the merge's id" },
      json,
    ],
    arguments: [{ name: "RUN|SESSION", summary: "two or more, by id or name", repeat: true, completes: ["run", "session"] }],
    examples: [
      ["caisson merge run_k3v run_x5a --name both", "then: caisson diff both, caisson apply both"],
      ["caisson merge one two three --conflicts agent", "the built-in merger resolves conflicts, and Caisson checks the result"],
    ],
    load: async () => (await commands()).startMerge,
  },
  ...Object.values(shared),
]);
