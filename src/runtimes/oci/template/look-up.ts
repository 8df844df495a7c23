import { lstatSync, type Stats } from "node:fs";

/** What lies at a path, links not followed; undefined when nothing does, or nothing that this user may know of. */
export function lookUp(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    // A folder on the way that may not be entered: a sandbox could not enter it either.
    return undefined;
  }
}
