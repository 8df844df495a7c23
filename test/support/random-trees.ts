import fc from "fast-check";
import type { Change, FileSide } from "../../src/workspace/change.ts";
import { sameSide } from "../../src/workspace/change.ts";
import { pairRenames } from "../../src/workspace/renames.ts";

/** The files of a folder by path, for property tests. */
export type Tree = ReadonlyMap<string, FileSide>;

const name = fc.constantFrom("a", "b", "c d", 'q"uote', "tab\tand\nline", "ü–文", "back\\slash", "trailing ", "-dash", "x.bin");
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("/"));
const text = fc
  .array(fc.constantFrom("one\n", "two\n", "three\n", "\n", "  four\n", "+++ x\n", "--- y\n", "\\ z\n", "caf\xe9\n", "end\r\n"), {
    maxLength: 30,
  })
  .chain((lines) => fc.constantFrom("", "no newline").map((last) => Buffer.from(lines.join("") + last, "latin1")));
const binary = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.concat([Buffer.from([0]), bytes]));
const file = fc
  .record({ content: fc.oneof({ weight: 4, arbitrary: text }, { weight: 1, arbitrary: binary }), mode: fc.constantFrom(0o644, 0o755) })
  .map((side): FileSide => ({ kind: "file", ...side }));
const link = fc
  .constantFrom("a", "b/c", "no where", "../outside", "/etc/passwd")
  .map((target): FileSide => ({ kind: "link", mode: 0o777, content: Buffer.from(target) }));
const side = fc.oneof({ weight: 6, arbitrary: file }, { weight: 1, arbitrary: link });

export const tree = fc.array(fc.tuple(path, side), { maxLength: 12 }).map(possible);

/** A tree and an edited version of it, in which some files stay, move, disappear, appear or change a little. */
export const edited = fc
  .tuple(tree, fc.array(fc.tuple(path, side), { maxLength: 6 }), fc.infiniteStream(fc.nat(7)))
  .map(([before, fresh, dice]) => {
    const after: [string, FileSide][] = [];
    for (const [at, old] of before) {
      const roll = dice.next().value ?? 0;
      if (roll === 0) continue;
      if (roll === 1) after.push([`${at}.moved`, old]);
      else if (roll === 2 && old.kind === "file") after.push([at, { ...old, mode: old.mode ^ 0o111 }]);
      else if (roll === 3 && old.kind === "file")
        after.push([at, { ...old, content: Buffer.concat([Buffer.from("first\n"), old.content]) }]);
      else if (roll === 4 && old.kind === "file")
        after.push([`moved/${at}`, { ...old, content: Buffer.concat([old.content, Buffer.from("last")]) }]);
      else after.push([at, old]);
    }
    return { before, after: possible([...fresh, ...after]) };
  });

/** Removes files whose path is a folder of another file. */
function possible(entries: readonly (readonly [string, FileSide])[]): Tree {
  const files = new Map<string, FileSide>();
  for (const [at, each] of entries) {
    const clashes = [...files.keys()].some((other) => other.startsWith(`${at}/`) || at.startsWith(`${other}/`));
    if (!clashes) files.set(at, each);
  }
  return files;
}

export function changesBetween(before: Tree, after: Tree): Change[] {
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  const all = paths.map((at) => ({
    path: at,
    from: null,
    before: before.get(at) ?? null,
    after: after.get(at) ?? null,
    changedOutside: false,
  }));
  return pairRenames(all.filter((change) => !sameSide(change.before, change.after)));
}
