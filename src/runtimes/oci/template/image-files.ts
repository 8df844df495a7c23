import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { ifErrnoSync, UNREACHABLE } from "../../../lib/failures.ts";
import { lstatOrNull } from "../../../lib/paths.ts";
import { type GeneratedFile, sandboxHostname, sandboxUser } from "./etc-files.ts";
import type { TemplateFolder } from "./host-template.ts";
import { resolveInRoot } from "./resolve-in-root.ts";

const ACCOUNTS_BYTES_MAX = 1024 * 1024;

/**
 * Returns what a sandbox adds to an image: the sandbox's user among the image's accounts, the machine's names, and
 * folders to mount on. They go into a layer above the image, which itself never changes. We never read outside the
 * image, wherever its links lead. A file that is not a small regular one counts as empty.
 */
export function imageFiles(options: { rootfsDir: string }): { files: GeneratedFile[]; folders: TemplateFolder[] } {
  const { rootfsDir } = options;
  const shell = runnable(rootfsDir, "/bin/bash") ? "/bin/bash" : "/bin/sh";
  const { name, uid, gid, home } = sandboxUser;
  const passwd = accounts(read(rootfsDir, "/etc/passwd"), { fields: 7, root: `root:x:0:0:root:/root:${shell}` });
  const group = accounts(read(rootfsDir, "/etc/group"), { fields: 4, root: "root:x:0:" });
  const file = (path: string, ...lines: string[]): GeneratedFile => ({ path, mode: 0o644, content: `${lines.join("\n")}\n` });
  return {
    files: [
      file("/etc/passwd", ...withOwn(passwd, name, `${name}:x:${uid}:${gid}:${name}:${home}:${shell}`)),
      file("/etc/group", ...withOwn(group, name, `${name}:x:${gid}:`)),
      file("/etc/hostname", sandboxHostname),
      file("/etc/hosts", `127.0.0.1 localhost ${sandboxHostname}`, "::1 localhost ip6-localhost ip6-loopback"),
      file("/etc/resolv.conf", "# No name server: the sandbox has no network."),
    ],
    folders: [
      ...["/dev", "/etc", "/home", "/proc", "/run", "/sys"].map((path): TemplateFolder => ({ path, mode: 0o755, owner: "root" })),
      { path: "/tmp", mode: 0o1777, owner: "root" },
      { path: home, mode: 0o755, owner: "user" },
      { path: "/workspace", mode: 0o755, owner: "user" },
    ],
  };
}

/** Returns the well-formed lines, with one for root added if it is missing. */
function accounts(text: string, options: { fields: number; root: string }): string[] {
  const lines = text.split("\n").filter((line) => {
    const parts = line.split(":");
    return parts.length === options.fields && /^[\w.][\w.-]*\$?$/.test(parts[0] ?? "") && /^\d{1,10}$/.test(parts[2] ?? "");
  });
  return lines.some((line) => line.startsWith("root:")) ? lines : [options.root, ...lines];
}

/**
 * Puts our line before any other with the same number, so that looking up the number gives our name. Drops other lines
 * with our name.
 */
function withOwn(lines: string[], name: string, own: string): string[] {
  const others = lines.filter((line) => !line.startsWith(`${name}:`));
  const at = others.findIndex((line) => line.startsWith("root:")) + 1;
  return [...others.slice(0, at), own, ...others.slice(at)];
}

function read(root: string, path: string): string {
  const found = resolveInRoot(root, path.split("/"));
  if (found === null) return "";
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const fd = ifErrnoSync(() => openSync(root + found, flags), [...UNREACHABLE, "ENXIO"], null);
  if (fd === null) return "";
  try {
    const stat = fstatSync(fd);
    return stat.isFile() && stat.size <= ACCOUNTS_BYTES_MAX ? readFileSync(fd, "utf8") : "";
  } finally {
    closeSync(fd);
  }
}

function runnable(root: string, path: string): boolean {
  const found = resolveInRoot(root, path.split("/"));
  return found !== null && (lstatOrNull(root + found)?.isFile() ?? false);
}
