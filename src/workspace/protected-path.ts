/** The prefix of folders that hold new and old files during an apply. */
export const STAGING_PREFIX = ".caisson-apply";

// Characters that some file systems ignore in a name: there, `.g\u200cit` is `.git`.
const IGNORED = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;

/**
 * Returns whether any file system reads a name as `.git`: ignoring case, suffixes that other systems drop, and
 * characters that they ignore.
 */
export function isGitName(name: string): boolean {
  return /^(\.git|git~\d+)([. ]*|:.*)$/i.test(name.replaceAll(IGNORED, ""));
}

/** Returns why a path may never be applied, or null. */
export function forbidden(path: string): string | null {
  const parts = path.split("/");
  if (path === "" || path.startsWith("/") || parts.some((part) => part === "" || part === "." || part === ".."))
    return "it is outside the folder";
  if (path.includes("\0") || path.includes("\n")) return "its name contains a control character";
  if (parts.some(isGitName)) return "it belongs to git: hooks and settings there would run outside the sandbox";
  if (parts.some((part) => part.toLowerCase().startsWith(STAGING_PREFIX))) return "its name is reserved for applying changes";
  return null;
}
