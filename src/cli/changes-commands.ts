import { CaissonError } from "../contract/error.ts";
import { applyChanges } from "../workspace/apply.ts";
import { commitToBranch } from "../workspace/git/branch.ts";
import { diffStat, renderDiff } from "../workspace/render-diff.ts";
import type { Given } from "./command.ts";
import type { CliContext } from "./context.ts";
import { openStation } from "./station.ts";
import { createStyle } from "./style.ts";
import { table } from "./table.ts";
import { sessionNamed, viewChanges } from "./workspace-view.ts";

/** `caisson diff [RUN] [PATH…]` */
export async function diff(context: CliContext, given: Given): Promise<number> {
  await using station = openStation(context);
  const [name, ...paths] = given.words;
  const session = await sessionNamed(station, name);
  const { changes } = await viewChanges(context, station, session);
  const wanted =
    paths.length === 0
      ? changes
      : changes.filter((change) => paths.some((path) => change.path === path || change.path.startsWith(`${path.replace(/\/$/, "")}/`)));
  const stats = diffStat(wanted);
  if (given.switched("json")) await context.stdout.write(`${JSON.stringify({ session: session.id, files: stats })}\n`);
  else if (given.switched("stat"))
    await context.stdout.write(
      table(stats.map((stat) => [stat.kind, stat.path, stat.binary ? "binary" : `+${stat.linesAdded} −${stat.linesRemoved}`])),
    );
  else await context.stdout.write(colour(context, renderDiff(wanted)));
  return 0;
}

function colour(context: CliContext, text: string): string {
  if (!context.stdout.isTerminal) return text;
  const style = createStyle({ isTerminal: true, noColor: context.variable("NO_COLOR") !== undefined });
  return text
    .split("\n")
    .map((line) => {
      if (line.startsWith("+") && !line.startsWith("+++")) return style.good(line);
      if (line.startsWith("-") && !line.startsWith("---")) return style.bad(line);
      return line.startsWith("@@") || line.startsWith("diff --git") ? style.bold(line) : line;
    })
    .join("\n");
}

/** `caisson apply [RUN] [PATH…]` */
export async function apply(context: CliContext, given: Given): Promise<number> {
  await using station = openStation(context);
  const [name, ...paths] = given.words;
  const session = await sessionNamed(station, name);
  const to = given.text("to");
  const folder = to ?? (session.source.kind === "folder" ? session.source.path : undefined);
  if (folder === undefined) {
    throw new CaissonError("invalid", `The session ${session.id} has no folder of yours.`, {
      hint: "Say where: caisson apply RUN --to DIR, or make a branch: caisson branch RUN.",
    });
  }
  const { changes } = await viewChanges(context, station, session);
  const result = await applyChanges(changes, {
    folder,
    ...(paths.length === 0 ? {} : { paths }),
    includeConfiguration: given.switched("include-config"),
  });
  await station.log.append(`session/${session.id}`, [
    { type: "session.applied", version: 1, data: { folder, paths: result.applied.slice(0, 1000) } },
  ]);
  if (given.switched("json")) {
    await context.stdout.write(`${JSON.stringify({ folder, ...result })}\n`);
    return 0;
  }
  for (const skipped of result.skipped) await context.stderr.write(`caisson: left out ${skipped.path}: ${skipped.reason}\n`);
  await context.stdout.write(`${result.applied.length} files applied to ${folder}\n`);
  return 0;
}

/** `caisson branch [RUN]` */
export async function branch(context: CliContext, given: Given): Promise<number> {
  await using station = openStation(context);
  const session = await sessionNamed(station, given.words[0]);
  if (session.source.kind !== "folder") {
    throw new CaissonError("unsupported", `The session ${session.id} has no repository of yours to make a branch in.`, {
      hint: "Its commits are inside; `caisson diff` shows the changes.",
    });
  }
  const { changes } = await viewChanges(context, station, session);
  const result = await commitToBranch(changes, {
    folder: session.source.path,
    name: given.text("name") ?? `caisson/${session.id}`,
    message: given.text("message") ?? `Changes of ${session.id}\n`,
    author: context.config.author,
    git: { path: context.path, home: context.home },
  });
  if (given.switched("json")) await context.stdout.write(`${JSON.stringify(result)}\n`);
  else await context.stdout.write(`${result.commit.slice(0, 12)} on branch ${result.branch}; your work tree is as it was\n`);
  for (const path of result.skipped) await context.stderr.write(`caisson: left out ${path}\n`);
  return 0;
}
