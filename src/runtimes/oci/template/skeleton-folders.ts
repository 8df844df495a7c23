import { dirname } from "node:path";
import { sandboxUser } from "./etc-files.ts";
import type { TemplateFolder } from "./host-template.ts";

/**
 * Every folder that has to be there, with its parents. What lies in the sandbox user's home is theirs, and what
 * toolchains want to write to.
 */
export function skeletonFolders({ paths, users }: { paths: string[]; users: string[] }): TemplateFolder[] {
  const fixed = ["/dev", "/etc", "/home", sandboxUser.home, "/mnt", "/opt", "/proc", "/root", "/run", "/srv", "/sys", "/tmp", "/usr"];
  const below = ["/run/lock", "/var/cache", "/var/lib", "/var/log", "/var/spool", "/workspace"];
  const all = new Set<string>();
  for (const path of [...fixed, ...below, ...paths, ...users]) {
    for (let folder = path; folder !== "/"; folder = dirname(folder)) all.add(folder);
  }
  return [...all].sort().map((path) => ({
    path,
    mode: path === "/tmp" || path === "/run/lock" ? 0o1777 : 0o755,
    owner: isWithin(path, sandboxUser.home) || path === "/workspace" || users.includes(path) ? "user" : "root",
  }));
}

export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`);
}
