import { dirname } from "node:path";
import { isWithin } from "../../../lib/paths.ts";
import { sandboxUser } from "./etc-files.ts";
import type { TemplateFolder } from "./host-template.ts";

/**
 * Returns every folder that must exist, with its parents. The sandbox's user owns the contents of the home folder, and
 * folders that toolchains write to.
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
