import { posix } from "node:path";
import type { FolderTree } from "./folder-tree.ts";
import { readLower } from "./read-side.ts";

/**
 * Folders of a work tree in which the user's own repository looks for hooks: git would run what an agent puts there at
 * the next commit. They are named by `core.hooksPath`, or `.git/hooks` is a link to one. The settings are only read as
 * text.
 */
export async function hookFolders(tree: FolderTree): Promise<string[]> {
  const config = await readLower(tree, ".git/config").catch(() => null);
  const text = config?.kind === "file" ? config.content.toString("utf8") : "";
  const named = [...text.matchAll(/^\s*(?:\[core\]\s*)?hookspath\s*=\s*"?([^"\n#;]+?)"?\s*(?:[#;].*)?$/gim)].map((match) => match[1] ?? "");
  const linked = tree.readLink(".git/hooks")?.toString("utf8");
  const paths = [...named.map((path) => inTree(tree, path, "")), ...(linked === undefined ? [] : [inTree(tree, linked, ".git")])];
  return paths.filter((path) => path !== null);
}

/** Null for one outside, which no change reaches. */
function inTree(tree: FolderTree, path: string, from: string): string | null {
  const relative = path.startsWith("/") ? posix.relative(tree.path, path) : posix.normalize(posix.join(from, path));
  return relative === "" || relative === "." ? "." : relative.startsWith("..") ? null : relative.replace(/\/$/, "");
}
