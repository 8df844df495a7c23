const NAME_CHARACTERS_MAX = 1024;

/**
 * Whether git takes this as the full name of a ref, as `git check-ref-format` has it. Stricter in what nobody misses:
 * it begins with `refs/`.
 */
export function isRefName(name: string): boolean {
  if (!name.startsWith("refs/") || name.length > NAME_CHARACTERS_MAX) return false;
  if (/[\0-\x20\x7f~^:?*[\\]|\.\.|@\{|\/\/|\.$|\/$/.test(name)) return false;
  return name.split("/").every((part) => part !== "" && !part.startsWith(".") && !part.endsWith(".lock"));
}

/** Whether this can be a branch's name; what looks like an option is none. */
export function isBranchName(name: string): boolean {
  return !name.startsWith("-") && name !== "HEAD" && isRefName(`refs/heads/${name}`);
}
