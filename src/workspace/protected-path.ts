/** Files that make a tool run something without being asked: an agent's change to one is shown, and applied only when it is named. */
const CONFIGURATION = [
  /(^|\/)\.envrc$/,
  /(^|\/)\.npmrc$/,
  /(^|\/)\.yarnrc(\.yml)?$/,
  /(^|\/)\.pnpmfile\.cjs$/,
  /(^|\/)\.mcp\.json$/,
  /(^|\/)\.gitmodules$/,
  /(^|\/)\.gitattributes$/,
  /(^|\/)\.(vscode|idea|devcontainer|husky|githooks|claude|cursor|codex|gemini)\//,
  /(^|\/)\.pre-commit-config\.ya?ml$/,
  /^\.github\/(workflows|actions)\//,
  /(^|\/)\.(bashrc|zshrc|profile|bash_profile|gitconfig)$/,
];

/** Why a path may never be applied, or null. */
export function forbidden(path: string): string | null {
  const parts = path.split("/");
  if (path === "" || path.startsWith("/") || parts.some((part) => part === "" || part === "." || part === ".."))
    return "it leaves the folder";
  if (path.includes("\0") || path.includes("\n")) return "its name has a character that no file of a project should have";
  if (parts.some((part) => part.toLowerCase() === ".git"))
    return "it belongs to git itself: hooks and settings there would run outside the sandbox";
  return null;
}

/** Why a path is applied only when it is named, or null. */
export function needsNaming(path: string): string | null {
  return CONFIGURATION.some((pattern) => pattern.test(path)) ? "tools outside the sandbox act on it" : null;
}
