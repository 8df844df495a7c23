import type { ConflictedFile } from "../../contract/merge/merge-event.ts";
import { type Side, sideFile } from "./conflict-files.ts";

const FILES_TOLD_MAX = 100;

const kinds: Record<ConflictedFile["kind"], string> = {
  content: "changed by both; the conflicts are marked in it",
  added_twice: "added by both; the conflicts are marked in it",
  changed_and_removed: "changed by one and removed by the other",
  not_text: "changed by both, and not text, so it has no markers",
  renamed: "moved by one and not by the other, or to different places",
};

/** Returns the task for an agent that resolves a conflict. Names are data, and quoted as such. */
export function resolveTask(files: readonly ConflictedFile[], { tasks, why }: { tasks: readonly string[]; why: string | null }): string {
  const lines = files
    .slice(0, FILES_TOLD_MAX)
    .map((file, index) => `- ${JSON.stringify(file.path)}: ${kinds[file.kind]}. ${versions(file, index)}`);
  const more = files.length > FILES_TOLD_MAX ? [`- and ${files.length - FILES_TOLD_MAX} more, numbered in the same way`] : [];
  return [
    "Two changes to the same repository were merged, and these files are in conflict. Resolve each of them so that the intent of both changes is kept.",
    "",
    ...lines,
    ...more,
    "",
    ...(tasks.length === 0 ? [] : ["The tasks behind the changes:", ...tasks.map((task) => `- ${JSON.stringify(task)}`), ""]),
    "Change only the files in the list. Keep everything outside the markers as it is, and leave no marker. If a file only names its versions, replace it with the right content, or remove it.",
    ...(why === null ? [] : ["", `An earlier attempt was rejected: ${why}`]),
  ].join("\n");
}

function versions({ sides }: ConflictedFile, index: number): string {
  const there = (["base", "merged", "theirs"] as const satisfies readonly Side[]).filter((side) => sides[side] !== null);
  const missingSides = (["merged", "theirs"] as const).filter((side) => sides[side] === null);
  const links = there.filter((side) => sides[side] === "120000");
  return [
    `Its versions: ${there.map((side) => sideFile(index, side)).join(", ")}.`,
    ...(missingSides.length === 0 ? [] : [`It does not exist in ${missingSides.join(" and ")}.`]),
    ...(links.length === 0 ? [] : [`In ${links.join(" and ")} it is a symbolic link, and the version contains its target.`]),
  ].join(" ");
}
