/** Paths inside a sandbox: absolute, with `/`. */

export function joined(folder: string, name: string): string {
  return folder === "/" ? `/${name}` : `${folder}/${name}`;
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1) || "/";
}

export function folderOf(path: string): string {
  const at = path.lastIndexOf("/");
  return at <= 0 ? "/" : path.slice(0, at);
}

/** Every folder between a root and a path, the root first, without the path itself. */
export function foldersTo(path: string, root: string): string[] {
  const folders: string[] = [];
  for (let folder = folderOf(path); isWithin(folder, root); folder = folderOf(folder)) {
    folders.unshift(folder);
    if (folder === root || folder === "/") break;
  }
  return folders;
}

export function isWithin(path: string, folder: string): boolean {
  return path === folder || folder === "/" || path.startsWith(`${folder}/`);
}

/** What is wrong with a name that somebody typed; null: nothing. */
export function nameProblem(name: string): string | null {
  if (name === "") return "It needs a name.";
  if (name === "." || name === ".." || name.includes("/")) return "A name has no / and is neither . nor ..";
  if (name.includes("\0")) return "A name has no NUL.";
  return new TextEncoder().encode(name).length > 255 ? "A name has at most 255 bytes." : null;
}

/** Whether every letter of what was typed is in the name, in order: `rdm` finds `readme`. Best first by what is left over. */
export function findNames(paths: readonly string[], typed: string, { max }: { max: number }): string[] {
  const wanted = typed.toLowerCase().replaceAll(" ", "");
  if (wanted === "") return [];
  return paths
    .map((path) => ({ path, rank: rankOf(path.toLowerCase(), wanted) }))
    .filter(({ rank }) => rank !== null)
    .sort(
      (left, right) => (left.rank ?? 0) - (right.rank ?? 0) || left.path.length - right.path.length || (left.path < right.path ? -1 : 1),
    )
    .slice(0, max)
    .map(({ path }) => path);
}

/** 0: in the name; 1: in the path; 2: its letters, in order. */
function rankOf(path: string, wanted: string): number | null {
  if (nameOf(path).includes(wanted)) return 0;
  if (path.includes(wanted)) return 1;
  let at = -1;
  for (const letter of wanted) {
    at = path.indexOf(letter, at + 1);
    if (at === -1) return null;
  }
  return 2;
}
