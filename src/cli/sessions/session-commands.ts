import type { DamagedSession } from "../../contract/session/session-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import { showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseDays } from "../options/option-values.ts";
import { ownedSince } from "../options/parse-list-filter.ts";
import { printResult, removeNamed } from "../print-result.ts";
import { runNamed } from "../runs/run-named.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";
import { lockText, sessionLines, sourceText } from "./session-view.ts";
import { atStep } from "./step-of-run.ts";
import { agreesToLose } from "./unapplied-work.ts";

/** The maximum number of runs shown of a session. */
const RUNS_MAX = 10_000;

export async function ls(context: CliContext, args: ParsedArguments): Promise<number> {
  const { sessions, damaged } = await context.station.sessions.list(ownedSince(args));
  await tellDamaged(context, damaged);
  if (args.flag("json")) {
    await context.stdout.printJson(sessions);
    return 0;
  }
  const cells = sessions.map((session) => [
    session.id,
    session.scope,
    lockText(session.lock),
    `${showDuration(Date.now() - Date.parse(session.lastUsedAt))} ago`,
    sourceText(session.source),
  ]);
  await context.stdout.print(
    cells.length === 0 ? line`No sessions yet.` : table([["SESSION", "SCOPE", "LOCK", "USED", "WORKSPACE"], ...cells]),
  );
  return 0;
}

/** Prints the sessions with unusable records. */
export async function tellDamaged({ stderr }: Pick<CliContext, "stderr">, damaged: readonly DamagedSession[]): Promise<void> {
  for (const { id, reason } of damaged) {
    await stderr.print(line`caisson: session ${id} cannot be listed: ${reason}`);
    await stderr.print(line`hint: Remove it with \`caisson session rm --force ${id}\`.`);
  }
}

export async function info(context: CliContext, args: ParsedArguments): Promise<number> {
  const { sessions, runs } = context.station;
  const { history, ...session } = await sessions.get(args.positionals[0] ?? "");
  const inside = await runs.list({ session: session.id, limit: RUNS_MAX });
  const runSummaries = inside.runs.map(({ run, title, finish, status }) => ({ run, task: title, status: finish ?? status }));
  if (args.flag("json")) {
    await context.stdout.printJson({ ...session, runs: runSummaries, history: history.map(({ type, at, data }) => ({ type, at, data })) });
    return 0;
  }
  const unapplied = (await ignore(sessions.unapplied(session.id), "the rest is still useful")) ?? null;
  await context.stdout.print(sessionLines({ ...session, history }, { runs: runSummaries, unapplied }));
  return 0;
}

/** `caisson session fork RUN[@STEP]` */
export async function fork(context: CliContext, args: ParsedArguments): Promise<number> {
  const { name: word, at } = atStep(args.positionals[0] ?? "");
  const session = await context.station.sessions.fork(word, defined({ name: args.option("name"), at }));
  await (args.flag("json") ? context.stdout.printJson(session) : context.stdout.print(line`${session.name ?? session.id}`));
  return 0;
}

/** `caisson session refresh SESSION` */
export async function refresh(context: CliContext, args: ParsedArguments): Promise<number> {
  const request = { discard: args.flag("discard"), ...defined({ ref: args.option("ref") }) };
  for await (const step of context.station.sessions.refresh(args.positionals[0] ?? "", request)) {
    if ("progress" in step) {
      await context.stderr.print(line`caisson: ${step.progress}`);
      continue;
    }
    const { session, before, commit } = step.refreshed;
    const text =
      before === commit ? line`${session} is already at ${commit.slice(0, 12)}.` : line`${session} is now at ${commit.slice(0, 12)}.`;
    await printResult(context, args, { json: step.refreshed, text });
  }
  return 0;
}

export async function rm(context: CliContext, args: ParsedArguments): Promise<number> {
  if (!(await agreesToLose(context, args, args.positionals))) return await nothingRemoved(context);
  return await removeNamed(context, args, {
    remove: (word) => context.station.sessions.discard(word, { force: args.flag("force"), why: "removed" }),
    describe: (id) => ({ text: line`${id} removed` }),
    reportsEach: true,
  });
}

export async function unlock(context: CliContext, args: ParsedArguments): Promise<number> {
  const unlocked = await context.station.sessions.unlock(args.positionals[0] ?? "", { force: args.flag("force") });
  await (args.flag("json") ? context.stdout.printJson({ unlocked }) : context.stdout.print(line`${unlocked} unlocked`));
  return 0;
}

/** Removes sessions that were unused for long, and those that should have been removed with their run. */
export async function cleanup(context: CliContext, args: ParsedArguments): Promise<number> {
  const olderThanMs = parseDays("older-than", args.option("older-than") ?? "7d");
  const { sessions } = context.station;
  const dryRun = args.flag("dry-run");
  const { removed: only } = await sessions.cleanup({ olderThanMs, dryRun: true });
  if (!dryRun && !(await agreesToLose(context, args, only))) return await nothingRemoved(context);
  const cleaned = await sessions.cleanup({ olderThanMs, dryRun, only });
  const { removed } = cleaned;
  if (args.flag("json")) await context.stdout.printJson(cleaned);
  else
    await context.stdout.print(
      removed.length === 0 ? line`Nothing to remove.` : line`${dryRun ? "Would remove" : "Removed"} ${removed.join(", ")}`,
    );
  return 0;
}

/** `caisson discard [RUN]`: discards a run's changes. */
export async function discard(context: CliContext, args: ParsedArguments): Promise<number> {
  const name = await runNamed(context, args.positionals[0]);
  if (!(await agreesToLose(context, args, [name]))) return await nothingRemoved(context);
  const discarded = await context.station.sessions.discard(name, { force: args.flag("force") });
  await (args.flag("json") ? context.stdout.printJson({ discarded }) : context.stdout.print(line`Discarded the changes of ${discarded}.`));
  return 0;
}

async function nothingRemoved(context: CliContext): Promise<number> {
  await context.stdout.print(line`Nothing was removed.`);
  return 1;
}
