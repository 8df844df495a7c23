import { CaissonError } from "../../contract/error.ts";
import type { RunView } from "../../contract/run-verbs.ts";
import type { LeftOut } from "../../contract/session-verbs.ts";
import type { SessionVerbs } from "../../station/sessions/verbs.ts";
import type { CliContext } from "../context.ts";
import { changedFileRow } from "../sessions/changed-file-row.ts";
import { dim, type Line, line, quotedName } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

const FILES_SHOWN = 20;

/** After a run: what changed, and what can be done with it. `signal` ends the look for it. */
export async function printOutcome(
  context: CliContext,
  sessions: SessionVerbs,
  { run, signal }: { run: RunView; signal: AbortSignal },
): Promise<void> {
  const session = await sessions.get(run.session).catch((error: unknown) => {
    if (error instanceof CaissonError && error.code === "not_found") return null;
    throw error;
  });
  if (session === null) {
    await context.stdout.print(line`Its session and files were removed, as its agent's file says.`);
    return;
  }
  const { files, leftOut, ignored } = await sessions.diff(session.id, { signal });
  const more = [
    ...(files.length > FILES_SHOWN ? [line`  … and ${files.length - FILES_SHOWN} more`] : []),
    ...(ignored > 0 ? [dim(`  + ${ignored} ignored ${ignored === 1 ? "file" : "files"}`)] : []),
  ];
  const goOn = run.finish === "done" ? [] : [[`caisson resume ${run.run}`, "go on with it"]];
  if (files.length === 0) {
    await context.stdout.print([
      ...(leftOut.length === 0
        ? [line`No file was changed.`, ...more]
        : [line`No change can be shown; these are left out:`, ...notShown(leftOut)]),
      ...nextSteps(goOn),
    ]);
    return;
  }
  const rows = files.slice(0, FILES_SHOWN).map(changedFileRow);
  const folder = session.source.kind === "folder";
  const next = [
    ...goOn,
    [`caisson diff ${run.run}`, "look at it"],
    ...(folder ? [[`caisson apply ${run.run}`, "bring it into your folder"]] : []),
    [`caisson branch ${run.run}${folder ? "" : " --to DIR"}`, "make a branch of it"],
    [`caisson discard ${run.run}`, "forget it"],
  ];
  await context.stdout.print([
    line``,
    ...table(rows),
    ...more,
    ...(leftOut.length === 0 ? [] : [line`Left out of what can be shown and applied:`, ...notShown(leftOut)]),
    line``,
    ...nextSteps(next, folder ? "Your folder is as it was. Next:" : "Next:"),
  ]);
}

function nextSteps(steps: readonly (readonly string[])[], heading = "Next:"): Line[] {
  if (steps.length === 0) return [];
  return [line`${heading}`, ...table(steps.map(([command = "", what = ""]) => [`  ${command}`, dim(what)]))];
}

function notShown(leftOut: readonly LeftOut[]): Line[] {
  const more = leftOut.length > FILES_SHOWN ? [line`  … and ${leftOut.length - FILES_SHOWN} more`] : [];
  return [...leftOut.slice(0, FILES_SHOWN).map(({ path, reason }) => line`  ${quotedName(path)}: ${reason}`), ...more];
}
