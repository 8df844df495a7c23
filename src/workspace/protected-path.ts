/** Folders in which new and old files wait while changes are applied begin with this. */
export const STAGING_PREFIX = ".caisson-apply";

// Characters that some file systems ignore in a name, so that `.g\u200cit` is `.git` there.
const IGNORED = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;

/**
 * Whether a name is `.git` to any file system: without regard to case, to what follows it on others than ours, and to
 * characters they ignore.
 */
export function isGitName(name: string): boolean {
  return /^(\.git|git~\d+)([. ]*|:.*)$/i.test(name.replaceAll(IGNORED, ""));
}

/** Why a path may never be applied, or null. */
export function forbidden(path: string): string | null {
  const parts = path.split("/");
  if (path === "" || path.startsWith("/") || parts.some((part) => part === "" || part === "." || part === ".."))
    return "it leaves the folder";
  if (path.includes("\0") || path.includes("\n")) return "its name has a character that no file of a project should have";
  if (parts.some(isGitName)) return "it belongs to git itself: hooks and settings there would run outside the sandbox";
  if (parts.some((part) => part.toLowerCase().startsWith(STAGING_PREFIX))) return "its name is one that applying uses itself";
  return null;
}
