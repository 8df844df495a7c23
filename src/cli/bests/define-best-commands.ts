import { defineCommands } from "../define-command.ts";
import { jobCommands } from "../durable/define-job-commands.ts";
import { ownerOption } from "../options/list-options.ts";
import { jsonOption as json } from "../options/runtime-options.ts";
import { runOptions } from "../runs/define-run-commands.ts";

const commands = () => import("./best-commands.ts");

/** Options of `run` that one of several unattended attempts cannot have. */
const notOfAttempts: ReadonlySet<string> = new Set([
  ..."continue from session workflow name record replay priority start-at detach json max-cost max-tokens".split(" "),
]);

const shared = jobCommands({
  verb: "best",
  argument: { name: "BEST", summary: "a best-of's id, or the beginning of it; see `caisson best ls`" },
  exampleId: "best_k3v",
  commands: {
    ls: { summary: "List best-ofs", options: [ownerOption, json] },
    show: { summary: "Show the attempts of a best-of as a ranked table" },
    resume: {
      summary: "Resume a best-of that is paused or lost its process",
      options: [{ name: "detach", short: "d", summary: "Leave it to the station, and return at once" }, json],
    },
    cancel: { summary: "Cancel a best-of, and stop its attempts" },
    pause: { summary: "Pause a best-of: start no further attempt or grading" },
    rm: { summary: "Remove best-ofs that have ended; their runs stay" },
  },
  load: async () => (await commands()).bestKind,
});

export const bestCommands = defineCommands([
  {
    path: ["best"],
    summary: "Make several attempts at a task, grade them, and promote the best one",
    details:
      "Each attempt is a separate run. The grader runs on a copy of its files, without network, where no process of the agent is alive; it passes with exit code 0, and may print `score: N` as its last line. The winner becomes this folder's newest run, so `caisson diff` and `caisson apply` mean it; the others stay, labelled best=ID.\nExit code: 0 an attempt was promoted, 1 none, 125 if Caisson itself failed.",
    options: [
      { name: "attempts", short: "n", value: "N", summary: "Make N attempts (default 4)" },
      { name: "models", value: "A,B", summary: "Let the attempts take turns with these models" },
      { name: "grade", value: "COMMAND", summary: "Grade each attempt with this shell command" },
      { name: "grade-timeout", value: "TIME", summary: "End a grader after this time (default 10m)" },
      { name: "judge", value: "MODEL", summary: "Let this model compare the attempts; the grader decides first" },
      { name: "concurrency", value: "N", summary: "Run or grade N attempts at a time (default 2)" },
      { name: "send", value: "TEXT", summary: "For forks of a run: send them this message" },
      { name: "max-cost", value: "USD", summary: "Spend at most this much on all attempts and the judge" },
      { name: "max-tokens", value: "N", summary: "Use at most N tokens for all attempts" },
      ...runOptions.filter(({ name }) => !notOfAttempts.has(name)),
      { name: "detach", short: "d", summary: "Leave it to the station, and print the best-of's id" },
      json,
    ],
    arguments: [
      {
        name: "WORDS",
        summary: "the task, or RUN[@STEP] to fork; an agent's name may come first",
        optional: true,
        repeat: true,
        completes: ["run"],
      },
    ],
    examples: [
      ['caisson best "make the tests pass" -n 4 --grade "npm test"', "four attempts; the first that passes at the lowest cost wins"],
      ['caisson best "speed up the parser" --models anthropic/claude-sonnet-4-5,openai/gpt-5 --grade ./bench.sh --max-cost 4', "by score"],
    ],
    load: async () => (await commands()).startBest,
  },
  ...Object.values(shared),
]);
