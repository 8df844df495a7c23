import { posix } from "node:path";

/** Makes a path from the model absolute. Relative paths start at the workspace. */
export function absolutePath(path: string): string {
  return posix.normalize(path.startsWith("/") ? path : `/workspace/${path}`);
}

/** Returns a path as people see it and rules match it: relative inside the workspace, absolute outside. */
export function shownPath(path: string): string {
  const absolute = absolutePath(path);
  return absolute.startsWith("/workspace/") ? absolute.slice("/workspace/".length) : absolute;
}
