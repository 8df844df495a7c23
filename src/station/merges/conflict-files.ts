import { CaissonError } from "../../contract/error/error.ts";
import type { ConflictedFile } from "../../contract/merge/merge-event.ts";
import { WORKSPACE } from "../../sandbox/path.ts";
import { runCommand } from "../../sandbox/run-command.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { GitInside, MergedTree, Stage } from "./git-inside.ts";
import { MERGED, removeFile } from "./git-inside.ts";

/**
 * The folder in the workspace that has the versions of each file while a conflict is open, numbered as in the conflict.
 */
export const SIDES_FOLDER = ".caisson-merge";
const FILES_MAX = 500;

export type Side = "base" | "merged" | "theirs";
const stageOf = { base: 1, merged: 2, theirs: 3 } as const;
export const sideFile = (index: number, side: Side) => `${SIDES_FOLDER}/${index + 1}.${side}`;
export const isSidesFile = (path: string) => path === SIDES_FOLDER || path.startsWith(`${SIDES_FOLDER}/`);

/** Returns the files in conflict, sorted by path. Throws `too_large`. */
export async function conflictsIn(git: GitInside, { commit, conflicted }: MergedTree): Promise<ConflictedFile[]> {
  if (conflicted.size > FILES_MAX)
    throw new CaissonError("too_large", `${conflicted.size} files are in conflict; at most ${FILES_MAX} can be resolved`);
  const files = await git.filesOf(commit);
  const paths = [...conflicted.keys()].sort();
  const marked = await git.contents(paths.flatMap((path) => files.get(path)?.object ?? []));
  return paths.flatMap((path) => {
    const stages = conflicted.get(path) ?? new Map<1 | 2 | 3, Stage>();
    const entry = files.get(path);
    const isMarked = entry !== undefined && entry.mode !== "120000" && hasMarkers(marked.get(entry.object) ?? Buffer.alloc(0));
    const mode = (stage: 1 | 2 | 3) => (stages.get(stage)?.mode ?? null) as ConflictedFile["sides"]["base"];
    const sides = { base: mode(1), merged: mode(2), theirs: mode(3) };
    // If two sessions moved a file to different places, its old path does not matter, only the new ones.
    if (sides.merged === null && sides.theirs === null) return [];
    return [{ path, kind: kindOf(sides, isMarked), sides }];
  });
}

function kindOf({ base, merged, theirs }: ConflictedFile["sides"], isMarked: boolean): ConflictedFile["kind"] {
  if (merged !== null && theirs !== null) return !isMarked ? "not_text" : base === null ? "added_twice" : "content";
  return base === null ? "renamed" : "changed_and_removed";
}

const marker = Buffer.from(`<<<<<<< ${MERGED}`);
const hasMarkers = (content: Buffer) => content.includes(marker);

/**
 * Writes the versions of each file to `SIDES_FOLDER`. Replaces a file that git could not mark with a placeholder that
 * cannot pass as a resolution.
 */
export async function layOut(
  sandbox: Sandbox,
  files: readonly ConflictedFile[],
  { git, conflicted }: { git: GitInside; conflicted: MergedTree["conflicted"] },
): Promise<void> {
  const contents = await git.contents(files.flatMap(({ path }) => [...(conflicted.get(path)?.values() ?? [])].map(({ object }) => object)));
  for (const [index, { path, kind }] of files.entries()) {
    for (const side of ["base", "merged", "theirs"] as const) {
      const stage = conflicted.get(path)?.get(stageOf[side]);
      if (stage === undefined) continue;
      const mode = stage.mode === "100755" ? 0o755 : 0o644;
      await sandbox.writeFile(`${WORKSPACE}/${sideFile(index, side)}`, contents.get(stage.object) ?? Buffer.alloc(0), {
        parents: true,
        mode,
      });
    }
    if (kind === "content" || kind === "added_twice") continue;
    await removeFile(sandbox, path);
    await sandbox.writeFile(`${WORKSPACE}/${path}`, Buffer.from(standIn(files, index)), { parents: true, mode: 0o644 });
  }
}

function standIn(files: readonly ConflictedFile[], index: number): string {
  const sides = files[index]?.sides;
  const tell = (side: "merged" | "theirs") =>
    sides?.[side] == null ? "(the file does not exist)" : `(its version is in ${sideFile(index, side)})`;
  return `<<<<<<< ${MERGED}\n${tell("merged")}\n=======\n${tell("theirs")}\n>>>>>>> theirs\n`;
}

/**
 * Returns one side of everything between markers, with all other lines. Treats lines as bytes, because a file need not
 * be UTF-8.
 */
export function sideOfMarked(content: Buffer, side: "merged" | "theirs"): Buffer {
  let within: "outside" | "merged" | "base" | "theirs" = "outside";
  const lines = content
    .toString("latin1")
    .split("\n")
    .filter((line) => {
      const before = within;
      if (before === "outside" && line.startsWith(`<<<<<<< ${MERGED}`)) within = "merged";
      else if (before === "merged" && line.startsWith("||||||| ")) within = "base";
      else if ((before === "merged" || before === "base") && line === "=======") within = "theirs";
      else if (before === "theirs" && line.startsWith(">>>>>>> ")) within = "outside";
      return before === within && (within === "outside" || within === side);
    });
  return Buffer.from(lines.join("\n"), "latin1");
}

/** Replaces a file with one of its sides. Idempotent. */
export async function takeSide(
  sandbox: Sandbox,
  { path, mode, content }: { path: string; mode: string | null; content: Buffer },
): Promise<void> {
  await removeFile(sandbox, path);
  if (mode === null) return;
  if (mode !== "120000") {
    await sandbox.writeFile(`${WORKSPACE}/${path}`, content, { parents: true, mode: mode === "100755" ? 0o755 : 0o644 });
    return;
  }
  const folder = path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "";
  if (folder !== "") await sandbox.mkdir(`${WORKSPACE}/${folder}`, { parents: true });
  const { ended, stderr } = await runCommand(sandbox, { argv: ["ln", "-sn", "--", content.toString("utf8"), `${WORKSPACE}/${path}`] });
  if (ended.kind !== "exited" || ended.exitCode !== 0)
    throw new CaissonError("unavailable", `the link ${path} could not be created: ${stderr.slice(0, 300)}`);
}
