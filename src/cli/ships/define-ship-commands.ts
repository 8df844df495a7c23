import { branchKinds, forgeKinds } from "../../contract/ship/ship-kinds.ts";
import type { OptionDefinition } from "../command.ts";
import { defineCommands } from "../define-command.ts";
import { jobCommands } from "../durable/define-job-commands.ts";
import { jsonOption as json } from "../options/runtime-options.ts";

const detach: OptionDefinition = { name: "detach", short: "d", summary: "Leave it to the running station, and return at once" };
const ship = { name: "SHIP", summary: "a ship's id or id prefix; see `caisson ship ls`", completes: [] };
const commands = () => import("./ship-commands.ts");

const shared = jobCommands({
  verb: "ship",
  argument: ship,
  exampleId: "ship_k3v7",
  commands: {
    ls: {
      summary: "List ships",
      options: [{ name: "all", short: "a", summary: "Include finished ships" }, json],
      example: "caisson ship ls --all",
    },
    show: { summary: "Show a ship and its history" },
    pause: { summary: "Pause a ship after its current step" },
    resume: { summary: "Retry a ship's failed step, or continue an interrupted ship", options: [detach, json] },
    cancel: { summary: "Close a ship's pull request, and keep its branch", options: [detach, json] },
    rm: { summary: "Remove finished ships; the remote does not change" },
  },
  load: async () => (await commands()).shipKind,
});

export const shipCommands = defineCommands([
  {
    path: ["ship"],
    summary: "Publish the changes of a run or a spec: branch, push, pull request; with --merge all the rest",
    details: [
      "The branch name is KIND/TICKET-WORDS. The token is a secret of the station (`caisson secret set`); git never gets it.",
      "The run must have ended with passing tests, according to its own log. Conflicts are never resolved blindly.",
      "Failed steps are retried for some minutes. `caisson ship resume` continues an interrupted ship.",
    ].join("\n"),
    options: [
      { name: "to", value: "REMOTE", summary: "Remote: https://…, or a local bare repository (default: where the work started from)" },
      { name: "forge", value: "FORGE", summary: "Kind of forge: github, gitea (also Forgejo), or git for none", choices: forgeKinds },
      { name: "into", value: "BRANCH", summary: "Merge into this branch (default: where the work started from, or the remote's default)" },
      { name: "token", value: "NAME", summary: "Secret to authenticate with (default GITHUB_TOKEN or GITEA_TOKEN)" },
      { name: "allow-private", summary: "Allow a remote at a private address, without TLS" },
      {
        name: "kind",
        value: "KIND",
        summary: "Branch kind: feature (default), fix, hotfix, refactor, docs, test or chore",
        choices: branchKinds,
      },
      { name: "ticket", value: "TICKET", summary: "Ticket number or key, such as 123" },
      {
        name: "title",
        value: "TEXT",
        summary: "Title of the commit and the pull request (default: the first line of the task, or of the spec's idea)",
      },
      {
        name: "body",
        value: "TEXT",
        summary: "Body of the pull request (default: the task, or a spec's requirements and what was done for them)",
      },
      { name: "merge", summary: "Merge as soon as possible, and remove the branch" },
      { name: "tests", value: "COMMAND", summary: "Command that runs the project's tests, if Caisson cannot detect it" },
      { name: "without-tests", value: "REASON", summary: "Ship without passing tests; the reason is recorded" },
      { name: "include-config", summary: "Include files that tools outside act on" },
      { name: "leave-out", summary: "Ship without the files that cannot be committed" },
      detach,
      json,
    ],
    arguments: [
      {
        name: "RUN|SESSION|SPEC",
        summary: "an ended run, a session, or a finished spec (default: the last run)",
        optional: true,
        completes: ["run", "session"],
      },
    ],
    examples: [
      ["caisson ship --kind fix --ticket 123 --merge", "the last run's changes, merged"],
      ["caisson ship run_k3v7 --to https://git.example.com/team/project --forge gitea", "to your Gitea or Forgejo"],
      ["caisson ship --to /srv/git/project.git", "to a bare repository on this machine"],
      ["caisson ship words --ticket WORDS-1", "the work of a spec, by its name"],
    ],
    load: async () => (await commands()).startShip,
  },
  shared.ls,
  shared.show,
  {
    path: ["ship", "merge"],
    summary: "Merge a ship as soon as possible, and remove its branch",
    options: [detach, json],
    arguments: [ship],
    examples: ["caisson ship merge ship_k3v7"],
    load: async () => (await commands()).mergeShip,
  },
  shared.pause,
  shared.resume,
  shared.cancel,
  shared.rm,
]);
