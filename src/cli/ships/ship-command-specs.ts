import type { BranchKind, ForgeKind } from "../../contract/ship.ts";
import type { CommandSpec, OptionSpec } from "../command.ts";

/** As the contract has them, whose schemas help does without. */
const forges: readonly ForgeKind[] = ["github", "gitea", "git"];
const kinds: readonly BranchKind[] = ["feature", "fix", "hotfix", "refactor", "docs", "test", "chore"];
const json: OptionSpec = { name: "json", summary: "Print JSON" };
const detach: OptionSpec = { name: "detach", short: "d", summary: "Do not wait; a station that serves goes on with it" };
const ship = { name: "SHIP", summary: "a ship's id, or the beginning of it; see `caisson ship ls`", completes: [] };
const commands = () => import("./ship-commands.ts");

export const shipCommands: readonly CommandSpec[] = [
  {
    path: ["ship"],
    summary: "Bring the changes of a run or a spec to a remote: branch, push, pull request; with --merge all the rest",
    details: [
      "The branch is called KIND/TICKET-WORDS. The token is a secret that the station keeps (`caisson secret set`); no git is given it.",
      "Tests must have run, last of all, and well, as the run's own events tell. A conflict is never resolved blindly.",
      "What fails is tried again for some minutes. A ship that was interrupted goes on with `caisson ship resume`.",
    ].join("\n"),
    options: [
      { name: "to", value: "REMOTE", summary: "https://…, or a bare repository here (default: where the work began from)" },
      { name: "forge", value: "FORGE", summary: "github, gitea (also Forgejo), or git for none", choices: forges },
      { name: "into", value: "BRANCH", summary: "The branch to merge into (default: where the work began from, or the remote's)" },
      { name: "token", value: "NAME", summary: "The secret to send along (default GITHUB_TOKEN or GITEA_TOKEN)" },
      { name: "allow-private", summary: "Also a remote at a private address, and without TLS there" },
      {
        name: "kind",
        value: "KIND",
        summary: "feature (default), fix, hotfix, refactor, docs, test or chore",
        choices: kinds,
      },
      { name: "ticket", value: "TICKET", summary: "What it is known by elsewhere, such as 123" },
      {
        name: "title",
        value: "TEXT",
        summary: "Of the commit and the pull request (default: the first line of the task, or of the spec's idea)",
      },
      {
        name: "body",
        value: "TEXT",
        summary: "Of the pull request (default: the task, or a spec's requirements and what was done for them)",
      },
      { name: "merge", summary: "Merge it as soon as it can be, and remove the branch" },
      { name: "tests", value: "COMMAND", summary: "The command that runs the project's tests, if it cannot be detected" },
      { name: "without-tests", value: "REASON", summary: "Ship without passing tests; the reason is recorded" },
      { name: "include-config", summary: "Also files that tools outside the sandbox act on" },
      { name: "leave-out", summary: "Ship without files that cannot be committed" },
      detach,
      json,
    ],
    arguments: [
      {
        name: "RUN|SESSION|SPEC",
        summary: "whose changes: a run's that ended, a session's, or those of a spec that is done (default: the last run's)",
        optional: true,
        completes: ["run", "session"],
      },
    ],
    examples: [
      ["caisson ship --kind fix --ticket 123 --merge", "The last run's changes, merged"],
      ["caisson ship run_k3v7 --to https://git.example.com/team/project --forge gitea", "To a Gitea or Forgejo of your own"],
      ["caisson ship --to /srv/git/project.git", "To a bare repository on this machine"],
      ["caisson ship words --ticket WORDS-1", "The work of the spec of this name"],
    ],
    load: async () => ({ run: (await commands()).start }),
  },
  {
    path: ["ship", "ls"],
    summary: "List ships",
    options: [{ name: "all", short: "a", summary: "Also those that are over" }, json],
    arguments: [],
    examples: [["caisson ship ls --all", ""]],
    load: async () => ({ run: (await commands()).list }),
  },
  {
    path: ["ship", "show"],
    summary: "Show a ship and what happened to it",
    options: [json],
    arguments: [ship],
    examples: [["caisson ship show ship_k3v7", ""]],
    load: async () => ({ run: (await commands()).show }),
  },
  {
    path: ["ship", "merge"],
    summary: "Have a ship merged, once it can be, and its branch removed",
    options: [detach, json],
    arguments: [ship],
    examples: [["caisson ship merge ship_k3v7", ""]],
    load: async () => ({ run: (await commands()).merge }),
  },
  {
    path: ["ship", "pause"],
    summary: "Pause a ship: no new step begins until it is resumed",
    options: [json],
    arguments: [ship],
    examples: [["caisson ship pause ship_k3v7", ""]],
    load: async () => ({ run: (await commands()).pause }),
  },
  {
    path: ["ship", "resume"],
    summary: "Retry what failed, or continue a ship that was interrupted",
    options: [detach, json],
    arguments: [ship],
    examples: [["caisson ship resume ship_k3v7", ""]],
    load: async () => ({ run: (await commands()).resume }),
  },
  {
    path: ["ship", "cancel"],
    summary: "Close a ship's pull request; its branch is kept",
    options: [detach, json],
    arguments: [ship],
    examples: [["caisson ship cancel ship_k3v7", ""]],
    load: async () => ({ run: (await commands()).cancel }),
  },
  {
    path: ["ship", "rm"],
    summary: "Forget ships that are over; what they brought to the remote stays",
    options: [],
    arguments: [{ ...ship, repeat: true }],
    examples: [["caisson ship rm ship_k3v7", ""]],
    load: async () => ({ run: (await commands()).remove }),
  },
];
