/** Paths inside a sandbox: absolute, with `/`. */

export function joinPath(folder: string, name: string): string {
  return folder === "/" ? `/${name}` : `${folder}/${name}`;
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1) || "/";
}

export function folderOf(path: string): string {
  const at = path.lastIndexOf("/");
  return at <= 0 ? "/" : path.slice(0, at);
}

/** Returns every folder from the root down to a path, without the path itself. */
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

/** Returns what is wrong with a file name, or null. */
export function nameProblem(name: string): string | null {
  if (name === "") return "Enter a name.";
  if (name === "." || name === ".." || name.includes("/")) return "A name cannot contain / or be . or ..";
  if (name.includes("\0")) return "A name cannot contain NUL.";
  return new TextEncoder().encode(name).length > 255 ? "A name can have at most 255 bytes." : null;
}

/** Finds the paths that contain every typed letter in order: `rdm` finds `readme`. Best matches first. */
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

/** Returns 0 for a match in the name, 1 in the path, 2 for letters in order, and null for no match. */
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
