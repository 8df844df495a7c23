import { lstatSync, type Stats } from "node:fs";

/**
 * What is at a path, a link itself and not where it leads; null when nothing is, also because a file is where a folder
 * would have to be, or a folder on the way may not be entered.
 */
export function lstatOrNull(path: string): Stats | null {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) ?? null;
  } catch {
    return null;
  }
}
