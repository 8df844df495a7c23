import { lstatSync, realpathSync, type Stats } from "node:fs";
import { ifErrnoSync, UNREACHABLE } from "./failures.ts";

/**
 * Returns the stats of a path, without following a link at its end; null if nothing exists there or this user cannot
 * access it. Throws other failures (EIO).
 */
export function lstatOrNull(path: string): Stats | null {
  return ifErrnoSync(() => lstatSync(path, { throwIfNoEntry: false }), UNREACHABLE, undefined) ?? null;
}

/**
 * Returns the path with all links resolved; null if nothing exists there or this user cannot access it. Throws other
 * failures (EIO).
 */
export function realPathOrNull(path: string): string | null {
  return ifErrnoSync(() => realpathSync(path), UNREACHABLE, null);
}

/**
 * Returns whether an absolute path is this folder or below it. Compares text only: neither may contain links or `..`.
 */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`);
}
