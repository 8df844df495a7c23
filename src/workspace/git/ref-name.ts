const NAME_CHARACTERS_MAX = 1024;

/**
 * Returns whether git accepts a full ref name, with the rules of `git check-ref-format`. In addition, it must begin
 * with `refs/`.
 */
export function isRefName(name: string): boolean {
  if (!name.startsWith("refs/") || name.length > NAME_CHARACTERS_MAX) return false;
  if (/[\0-\x20\x7f~^:?*[\\]|\.\.|@\{|\/\/|\.$|\/$/.test(name)) return false;
  return name.split("/").every((part) => part !== "" && !part.startsWith(".") && !part.endsWith(".lock"));
}

/** Returns whether this can be a branch name. Names that look like an option cannot. */
export function isBranchName(name: string): boolean {
  return !name.startsWith("-") && name !== "HEAD" && isRefName(`refs/heads/${name}`);
}
