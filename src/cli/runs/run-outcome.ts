import { foundOrNull } from "../../contract/error/found-or-null.ts";
import type { RunView } from "../../contract/run/run-verbs.ts";
import type { LeftOut } from "../../contract/session/session-verbs.ts";
import type { SessionVerbs } from "../../verbs/sessions.ts";
import type { CliContext } from "../context.ts";
import { changedFileRow } from "../sessions/changed-file-row.ts";
import { dim, type Line, line, quotedName } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

const FILES_SHOWN = 20;

/** Prints what a run changed, and the commands to continue with. `signal` aborts the search for changes. */
export async function printOutcome(
  context: CliContext,
  sessions: SessionVerbs,
  { run, signal }: { run: RunView; signal: AbortSignal },
): Promise<void> {
  const session = await foundOrNull(sessions.get(run.session));
  if (session === null) {
    await context.stdout.print(
      line`${(await lastNotice(context, run)) ?? "Its session and files were removed, as its cleanup policy says."}`,
    );
    return;
  }
  const { files, leftOut, ignored } = await sessions.diff(session.id, { signal });
  const more = [
    ...(files.length > FILES_SHOWN ? [line`  … and ${files.length - FILES_SHOWN} more`] : []),
    ...(ignored > 0 ? [dim(`  + ${ignored} ignored ${ignored === 1 ? "file" : "files"}`)] : []),
  ];
  const continueHints = run.finish === "done" ? [] : [[`caisson resume ${run.run}`, "continue the run"]];
  if (files.length === 0) {
    await context.stdout.print([
      ...(leftOut.length === 0
        ? [line`No files were changed.`, ...more]
        : [line`No changes to show; these files are left out:`, ...notShown(leftOut)]),
      ...nextSteps(continueHints),
    ]);
    return;
  }
  const rows = files.slice(0, FILES_SHOWN).map(changedFileRow);
  const folder = session.source.kind === "folder";
  const next = [
    ...continueHints,
    [`caisson diff ${run.run}`, "review the changes"],
    ...(folder ? [[`caisson apply ${run.run}`, "apply them to your folder"]] : []),
    [`caisson branch ${run.run}${folder ? "" : " --to DIR"}`, "put them on a branch"],
    [`caisson discard ${run.run}`, "discard them"],
  ];
  await context.stdout.print([
    line``,
    ...table(rows),
    ...more,
    ...(leftOut.length === 0 ? [] : [line`Not shown and not applied:`, ...notShown(leftOut)]),
    line``,
    ...nextSteps(next, folder ? "Your folder is unchanged. Next:" : "Next:"),
  ]);
}

/** Returns what the run log says about the time after the run's end, or null. */
async function lastNotice({ station }: CliContext, { run, seq }: RunView): Promise<string | null> {
  let text: string | null = null;
  for await (const event of station.runs.events(run, { fromSeq: seq })) if (event.type === "run.noticed") text = event.data.text;
  return text;
}

function nextSteps(steps: readonly (readonly string[])[], heading = "Next:"): Line[] {
  if (steps.length === 0) return [];
  return [line`${heading}`, ...table(steps.map(([command = "", what = ""]) => [`  ${command}`, dim(what)]))];
}

function notShown(leftOut: readonly LeftOut[]): Line[] {
  const more = leftOut.length > FILES_SHOWN ? [line`  … and ${leftOut.length - FILES_SHOWN} more`] : [];
  return [...leftOut.slice(0, FILES_SHOWN).map(({ path, reason }) => line`  ${quotedName(path)}: ${reason}`), ...more];
}
