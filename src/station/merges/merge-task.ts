import type { ConflictedFile } from "../../contract/merge-event.ts";
import { type Side, sideFile } from "./conflict-files.ts";

const FILES_TOLD_MAX = 100;

const kinds: Record<ConflictedFile["kind"], string> = {
  content: "changed by both; the places are marked in it",
  added_twice: "made by both; the places are marked in it",
  changed_and_removed: "changed by the one and removed by the other",
  not_text: "changed by both, and not text that could be marked",
  renamed: "moved by the one and not by the other, or to another place",
};

/** What an agent is told that resolves a conflict. Names are data, and quoted as such. */
export function resolveTask(files: readonly ConflictedFile[], { tasks, why }: { tasks: readonly string[]; why: string | null }): string {
  const told = files
    .slice(0, FILES_TOLD_MAX)
    .map((file, index) => `- ${JSON.stringify(file.path)}: ${kinds[file.kind]}. ${versions(file, index)}`);
  const more = files.length > FILES_TOLD_MAX ? [`- and ${files.length - FILES_TOLD_MAX} more, numbered in the same way`] : [];
  return [
    "Two pieces of work on the same repository were merged, and these files are in conflict. Resolve every one of them so that what both wanted holds.",
    "",
    ...told,
    ...more,
    "",
    ...(tasks.length === 0 ? [] : ["What the pieces of work were about:", ...tasks.map((task) => `- ${JSON.stringify(task)}`), ""]),
    "Change only the files in the list. Keep everything in them that is not between markers as it is, and leave no marker. A file that stands for a version by its name is replaced by the content that belongs there, or removed.",
    ...(why === null ? [] : ["", `An earlier attempt was refused: ${why}`]),
  ].join("\n");
}

function versions({ sides }: ConflictedFile, index: number): string {
  const there = (["base", "merged", "theirs"] as const satisfies readonly Side[]).filter((side) => sides[side] !== null);
  const gone = (["merged", "theirs"] as const).filter((side) => sides[side] === null);
  const links = there.filter((side) => sides[side] === "120000");
  return [
    `Its versions: ${there.map((side) => sideFile(index, side)).join(", ")}.`,
    ...(gone.length === 0 ? [] : [`In ${gone.join(" and ")} it is not there.`]),
    ...(links.length === 0 ? [] : [`In ${links.join(" and ")} it is a symbolic link, and the version is where it leads.`]),
  ].join(" ");
}
