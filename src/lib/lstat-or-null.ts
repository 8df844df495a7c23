import { lstatSync, type Stats } from "node:fs";
import { isErrno } from "./is-errno.ts";

/**
 * What is at a path, a link itself and not where it leads; null when nothing is, also because a file is where a folder
 * would have to be, or a folder on the way may not be entered. Throws other failures (EIO).
 */
export function lstatOrNull(path: string): Stats | null {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) ?? null;
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR", "EACCES", "EPERM", "ELOOP", "ENAMETOOLONG", "ERR_INVALID_ARG_VALUE")) return null;
    throw error;
  }
}
