import { posix } from "node:path";
import type { FolderTree } from "./folder-tree.ts";
import { ifUnreadable, readLower } from "./read-side.ts";

/**
 * Returns the folders of a work tree in which the user's own repository looks for hooks: git would run an agent's files
 * there at the next commit. `core.hooksPath` names the folder, or `.git/hooks` is a link to it. We only read the
 * settings as text.
 */
export async function hookFolders(tree: FolderTree): Promise<string[]> {
  const config = await readLower(tree, ".git/config").catch(ifUnreadable);
  const text = config?.kind === "file" ? config.content.toString("utf8") : "";
  const named = text.split("\n").flatMap(hooksPathIn);
  const linked = tree.readLink(".git/hooks")?.toString("utf8");
  const paths = [...named.map((path) => inTree(tree, path, "")), ...(linked === undefined ? [] : [inTree(tree, linked, ".git")])];
  return paths.filter((path) => path !== null);
}

/** Returns the value of `core.hooksPath` in a line of git's settings, even if the section name precedes it. */
export function hooksPathIn(line: string): string[] {
  const setting = line
    .trim()
    .replace(/^\[core\]/i, "")
    .trimStart();
  const [key = "", value = ""] = splitOnce(setting, "=");
  if (key.trim().toLowerCase() !== "hookspath") return [];
  const bare = value.trim().replace(/^"/, "");
  const end = bare.search(/["#;]/);
  const path = (end < 0 ? bare : bare.slice(0, end)).trim();
  return path === "" ? [] : [path];
}

function splitOnce(text: string, sign: string): string[] {
  const at = text.indexOf(sign);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

/** Returns null for a path outside the work tree, because no change can be there. */
function inTree(tree: FolderTree, path: string, from: string): string | null {
  const relative = path.startsWith("/") ? posix.relative(tree.path, path) : posix.normalize(posix.join(from, path));
  return relative === "" || relative === "." ? "." : relative.startsWith("..") ? null : relative.replace(/\/$/, "");
}
