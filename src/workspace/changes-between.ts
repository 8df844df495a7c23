import { type Change, type Changes, type FileSide, sameSide } from "./change.ts";
import { pairRenames } from "./renames.ts";

/**
 * Returns what changed between two states of a workspace, given the changes of each since the same beginning, sorted by
 * path, with moves paired.
 */
export function changesBetween(before: Changes, after: Changes): Changes {
  const [from, to] = [sidesOf(before.changes), sidesOf(after.changes)];
  const paths = [...new Set([...from.keys(), ...to.keys()])].sort();
  const changes = paths.flatMap((path): Change[] => {
    const [then, now] = [from.get(path), to.get(path)];
    const original = (then ?? now)?.original ?? null;
    const sides = { before: then === undefined ? original : then.current, after: now === undefined ? original : now.current };
    return sameSide(sides.before, sides.after) ? [] : [{ path, from: null, ...sides, changedOutside: false }];
  });
  const left = new Map([...before.leftOut, ...after.leftOut].map((each) => [each.path, each]));
  return { changes: pairRenames(changes), leftOut: [...left.values()], ignored: after.ignored };
}

/** Returns each changed path, as it was at the beginning and as it is. A moved file changed at both of its paths. */
function sidesOf(changes: readonly Change[]): Map<string, { original: FileSide | null; current: FileSide | null }> {
  const sides = new Map<string, { original: FileSide | null; current: FileSide | null }>();
  for (const { path, from, before, after } of changes) {
    sides.set(path, { original: from === null ? before : null, current: after });
    if (from !== null) sides.set(from, { original: before, current: null });
  }
  return sides;
}
