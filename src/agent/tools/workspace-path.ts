import { posix } from "node:path";

/** A path as the model writes it, made absolute: relative ones are in the workspace. */
export function absolutePath(path: string): string {
  return posix.normalize(path.startsWith("/") ? path : `/workspace/${path}`);
}

/** As shown to people and matched by rules: relative inside the workspace, absolute outside it. */
export function shownPath(path: string): string {
  const absolute = absolutePath(path);
  return absolute.startsWith("/workspace/") ? absolute.slice("/workspace/".length) : absolute;
}
