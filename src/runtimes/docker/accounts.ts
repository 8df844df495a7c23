import { dirname } from "node:path";
import { guestInside, homeInside, privateInside, workspaceInside } from "./container-config.ts";
import type { SmallEntry } from "./small-archive.ts";

/** The account files of an image; null for one that it lacks. */
export interface AccountFiles {
  passwd: string | null;
  group: string | null;
}

const rootAccount = "root:x:0:0:root:/root:/bin/sh";
const rootGroup = "root:x:0:";

/**
 * The folders in which the guest and its socket are mounted. Written every time: in a snapshot, root inside may have
 * changed them.
 */
export function guestFolders(): SmallEntry[] {
  const root = { kind: "directory" as const, uid: 0, gid: 0 };
  return [
    { name: dirname(privateInside).slice(1), mode: 0o755, ...root },
    { name: privateInside.slice(1), mode: 0o700, ...root },
  ];
}

/** Returns the entries to create in a sandbox before it starts: its user's account and home, and the workspace. */
export function accountEntries(options: { files: AccountFiles; workUid: number; sudo: boolean }): SmallEntry[] {
  const { files, workUid, sudo } = options;
  const root = { uid: 0, gid: 0 };
  const own = { uid: workUid, gid: workUid };
  return [
    { name: "etc/passwd", kind: "file", mode: 0o644, ...root, content: passwdWith(files.passwd, workUid) },
    { name: "etc/group", kind: "file", mode: 0o644, ...root, content: groupWith(files.group, workUid) },
    { name: homeInside.slice(1), kind: "directory", mode: 0o755, ...own },
    { name: workspaceInside.slice(1), kind: "directory", mode: 0o755, ...own },
    ...(sudo ? [{ name: "usr/local/bin/sudo", kind: "link" as const, mode: 0o777, ...root, linkTarget: guestInside }] : []),
  ];
}

function passwdWith(passwd: string | null, uid: number): string {
  return withLine(passwd ?? rootAccount, `user:x:${uid}:${uid}:Sandbox:${homeInside}:/bin/sh`, uid);
}

function groupWith(group: string | null, gid: number): string {
  return withLine(group ?? rootGroup, `user:x:${gid}:`, gid);
}

/** Replaces the image's lines for the same name or id, so that neither is ambiguous. */
function withLine(text: string, line: string, id: number): string {
  const otherLines = text.split("\n").filter((each) => {
    const [name, , number] = each.split(":");
    return each !== "" && name !== "user" && number !== String(id);
  });
  return `${[...otherLines, line].join("\n")}\n`;
}
