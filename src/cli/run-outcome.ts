import type { RunState } from "../agent/run-state.ts";
import { CaissonError } from "../contract/error.ts";
import type { LeftOut } from "../workspace/change.ts";
import { diffStat } from "../workspace/render-diff.ts";
import type { CliContext } from "./context.ts";
import { bad, dim, good, type Line, line, quotedName } from "./line.ts";
import type { LocalStation } from "./station.ts";
import { table } from "./table.ts";
import { viewChanges } from "./workspace-view.ts";

const FILES_SHOWN = 20;

/** After a run: what changed, and what can be done with it. */
export async function printOutcome(context: CliContext, station: LocalStation, state: RunState, options: { json: boolean }): Promise<void> {
  if (options.json) return;
  const session = await station.sessions.get(state.session).catch((error: unknown) => {
    if (error instanceof CaissonError && error.code === "not_found") return null;
    throw error;
  });
  if (session === null) {
    await context.stdout.print(line`Its session and files were removed, as its agent's file says.`);
    return;
  }
  const { changes, leftOut } = await viewChanges(context, station, session);
  if (changes.length === 0) {
    await context.stdout.print(
      leftOut.length === 0 ? line`No file was changed.` : [line`No change can be shown; these are left out:`, ...notShown(leftOut)],
    );
    return;
  }
  const stats = await diffStat(changes, context.interruption);
  const rows = stats
    .slice(0, FILES_SHOWN)
    .map((stat) => [
      `  ${stat.kind}`,
      quotedName(stat.path),
      stat.binary ? "binary" : line`${good(`+${stat.linesAdded}`)} ${bad(`−${stat.linesRemoved}`)}`,
    ]);
  const more = stats.length > FILES_SHOWN ? [line`  … and ${stats.length - FILES_SHOWN} more`] : [];
  const folder = session.source.kind === "folder";
  const next = [
    [`caisson diff ${state.run}`, "look at it"],
    ...(folder ? [[`caisson apply ${state.run}`, "bring it into your folder"]] : []),
    [`caisson branch ${state.run}${folder ? "" : " --to DIR"}`, "make a branch of it"],
    [`caisson discard ${state.run}`, "forget it"],
  ];
  await context.stdout.print([
    line``,
    ...table(rows),
    ...more,
    ...(leftOut.length === 0 ? [] : [line`Left out of what can be shown and applied:`, ...notShown(leftOut)]),
    line``,
    line`${folder ? "Your folder is as it was. " : ""}Next:`,
    ...table(next.map(([command = "", what = ""]) => [`  ${command}`, dim(what)])),
  ]);
}

function notShown(leftOut: readonly LeftOut[]): Line[] {
  const more = leftOut.length > FILES_SHOWN ? [line`  … and ${leftOut.length - FILES_SHOWN} more`] : [];
  return [...leftOut.slice(0, FILES_SHOWN).map(({ path, reason }) => line`  ${quotedName(path)}: ${reason}`), ...more];
}
