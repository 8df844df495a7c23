/** Where new and old files wait while changes are applied: in the folder itself, so that a rename moves them, and gone when nothing is being applied. */
export const STAGING_NAME = ".caisson-apply";

/** Files that make a tool run something without being asked: an agent's change to one is shown, and applied only when it is named. */
const CONFIGURATION = [
  /(^|\/)\.envrc$/,
  /(^|\/)\.npmrc$/,
  /(^|\/)\.yarnrc(\.yml)?$/,
  /(^|\/)\.yarn\/(plugins|releases)\//,
  /(^|\/)\.pnpmfile\.cjs$/,
  /(^|\/)\.mcp\.json$/,
  /(^|\/)\.gitmodules$/,
  /(^|\/)\.gitattributes$/,
  /(^|\/)\.lfsconfig$/,
  /(^|\/)\.(vscode|idea|devcontainer|husky|githooks|claude|cursor|codex|gemini|caisson|direnv|zed|fleet)\//,
  /(^|\/)\.devcontainer\.json$/,
  /(^|\/)[^/]+\.code-workspace$/,
  /(^|\/)\.pre-commit-config\.ya?ml$/,
  /(^|\/)(lefthook|\.lefthook)\.(ya?ml|toml|json)$/,
  /(^|\/)\.?mise(\.[\w.]+)?\.toml$/,
  /(^|\/)\.(nvim|exrc|vimrc|nvim\.lua|dir-locals\.el)$/,
  /(^|\/)\.cargo\/config(\.toml)?$/,
  /(^|\/)\.mvn\//,
  /^\.github\/(workflows|actions)\//,
  /(^|\/)\.gitlab-ci\.yml$/,
  /(^|\/)\.(bashrc|zshrc|zshenv|profile|bash_profile|gitconfig)$/,
];

/** Why a path may never be applied, or null. */
export function forbidden(path: string): string | null {
  const parts = path.split("/");
  if (path === "" || path.startsWith("/") || parts.some((part) => part === "" || part === "." || part === ".."))
    return "it leaves the folder";
  if (path.includes("\0") || path.includes("\n")) return "its name has a character that no file of a project should have";
  if (parts.some((part) => /^(\.git|git~\d+)$/i.test(part)))
    return "it belongs to git itself: hooks and settings there would run outside the sandbox";
  if (parts.includes(STAGING_NAME)) return "its name is one that applying uses itself";
  return null;
}

/** Why a path is applied only when it is named, or null. */
export function needsNaming(path: string): string | null {
  return CONFIGURATION.some((pattern) => pattern.test(path)) ? "tools outside the sandbox act on it" : null;
}

/**
 * Folders that would be repositories by themselves, without being called .git: whoever types `git status` in one runs what its settings name. `exists` tells what is there
 * already.
 */
export function plantedRepositories(paths: readonly string[], exists: (path: string) => boolean): string[] {
  const below = (folder: string, name: string) => {
    const path = folder === "" ? name : `${folder}/${name}`;
    return paths.some((each) => each === path || each.startsWith(`${path}/`)) || exists(path);
  };
  return paths
    .filter((path) => /(^|\/)(HEAD|config|commondir|gitdir)$/.test(path))
    .map((path) => path.slice(0, Math.max(0, path.lastIndexOf("/"))))
    .filter((folder) => below(folder, "HEAD") && ((below(folder, "objects") && below(folder, "refs")) || below(folder, "commondir")));
}
