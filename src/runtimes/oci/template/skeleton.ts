import { createHash } from "node:crypto";
import { type Dirent, readdirSync, type Stats } from "node:fs";
import { chmod, lchown, mkdir, open, readlink, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import { ifErrno, ifErrnoSync, isErrno, UNREACHABLE } from "../../../lib/failures.ts";
import { lstatOrNull } from "../../../lib/paths.ts";
import type { EtcCopy } from "./etc-files.ts";
import type { HostTemplate } from "./host-template.ts";
import { createTemplateCache } from "./template-cache.ts";

const COPY_ENTRIES_MAX = 5_000;
const COPY_FILE_BYTES_MAX = 8 * 1024 * 1024;
const COPY_DEPTH_MAX = 8;
/** Increased when the layout of skeletons changes, so that old ones are not used. */
const LAYOUT = 1;

export interface SkeletonOptions {
  template: Pick<HostTemplate, "folders" | "links" | "files" | "copies">;
  stateDir: string;
  /**
   * The ids on disk of root and of the sandbox's user. If absent, the caller owns everything, for mounts that map ids.
   */
  owners?: { root: { uid: number; gid: number }; user: { uid: number; gid: number } };
}

/**
 * Creates the lowest layer of a host sandbox: folders, links, generated files and copies from /etc. Returns its folder.
 * The same template always gives the same folder, which is created once. A changed host gives a new one, and the old
 * one stays for the sandboxes that use it. Atomic: the folder appears complete or not at all, even with concurrent
 * creators. Throws `no_space`, `denied`, `internal`.
 */
export async function writeSkeleton(options: SkeletonOptions): Promise<string> {
  const cache = createTemplateCache({ stateDir: options.stateDir });
  const name = `host-${fingerprint(options)}`;
  const existing = await cache.use(name);
  if (existing !== null) return existing;
  const draft = await cache.draft();
  try {
    await fill(draft, options);
    await chmod(draft, 0o755);
    return await cache.publish(draft, name);
  } catch (cause) {
    await cache.discard(draft);
    throw toSkeletonError(cause, cache.path(name));
  }
}

/**
 * Hashes what the skeleton is made from: generated parts in full, copied parts by the times and sizes of their
 * originals.
 */
function fingerprint({ template, owners }: SkeletonOptions): string {
  const hash = createHash("sha256");
  const { folders, links, files } = template;
  hash.update(JSON.stringify({ LAYOUT, folders, links, files, owners: owners ?? null }));
  for (const copy of template.copies) {
    walk(copy, (path, _kind, stat) => {
      // A link has no stat here. A changed link is a new one, which shows in the time of its folder.
      hash.update(stat === undefined ? `${path}\n` : `${path}\0${stat.mode} ${stat.size} ${stat.mtimeMs} ${stat.ctimeMs}\n`);
    });
  }
  return hash.digest("hex").slice(0, 32);
}

async function fill(draft: string, { template, owners }: SkeletonOptions): Promise<void> {
  const own = async (path: string, owner: "root" | "user") => {
    if (owners !== undefined) await lchown(path, owners[owner].uid, owners[owner].gid);
  };
  await own(draft, "root");
  const folder = async (path: string, mode: number, owner: "root" | "user") => {
    const isNew = await mkdir(draft + path).then(() => true, ignoreExisting);
    if (!isNew) return;
    // mkdir applies the umask to its mode, and does not set the sticky bit.
    await chmod(draft + path, mode);
    await own(draft + path, owner);
  };
  for (const { path, mode, owner } of template.folders) await folder(path, mode, owner);
  for (const { path, mode, content } of template.files) {
    await writeDurably(draft + path, Buffer.from(content), mode);
    await own(draft + path, path.startsWith("/home/") ? "user" : "root");
  }
  const links = [...template.links];
  for (const copy of template.copies) {
    const parents: string[] = [];
    for (let path = dirname(copy.path); path !== "/"; path = dirname(path)) parents.unshift(path);
    for (const path of parents) await folder(path, 0o755, "root");
    const paths: { path: string; kind: Kind }[] = [];
    walk(copy, (path, kind) => paths.push({ path, kind }));
    for (const { path, kind } of paths) {
      if (kind === "folder") await folder(path, 0o755, "root");
      else if (kind === "link") links.push({ path, target: await readlink(path) });
      else if (await copyPublic(path, draft + path)) await own(draft + path, "root");
    }
  }
  for (const { path, target } of links) {
    await symlink(target, draft + path).catch(ignoreExisting);
    await own(draft + path, "root");
  }
}

type Kind = "folder" | "file" | "link";

/**
 * Visits world-readable entries, parents first. Skips folders that not everybody may enter, with all their contents.
 */
function walk(copy: EtcCopy, visit: (path: string, kind: Kind, stat?: Stats) => void): void {
  let entries = 0;
  const step = (path: string, name: string, depth: number) => {
    entries += 1;
    if (entries > COPY_ENTRIES_MAX || depth > COPY_DEPTH_MAX || copy.except?.test(name) === true) return;
    const stat = lstatOrNull(path);
    if (stat?.isSymbolicLink()) visit(path, "link", stat);
    else if (stat?.isFile() && (stat.mode & 0o004) !== 0 && stat.size <= COPY_FILE_BYTES_MAX) visit(path, "file", stat);
    else if (stat?.isDirectory() && (stat.mode & 0o005) === 0o005) {
      visit(path, "folder", stat);
      for (const entry of list(path)) {
        if (entry.isSymbolicLink() && copy.except?.test(entry.name) !== true) visit(join(path, entry.name), "link");
        else step(join(path, entry.name), entry.name, depth + 1);
      }
    }
  };
  step(copy.path, "", 0);
}

function list(folder: string): Dirent[] {
  // A missing or unreadable folder is left out of the skeleton.
  const entries = ifErrnoSync(() => readdirSync(folder, { withFileTypes: true }), UNREACHABLE, []);
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * Copies a world-readable file, checked on the open descriptor. Returns false if it no longer exists or is no longer
 * public.
 */
async function copyPublic(from: string, to: string): Promise<boolean> {
  const source = await ifErrno(open(from, "r"), [...UNREACHABLE, "ENXIO"], null);
  if (source === null) return false;
  try {
    const stat = await source.stat();
    if (!stat.isFile() || (stat.mode & 0o004) === 0 || stat.size > COPY_FILE_BYTES_MAX) return false;
    await writeDurably(to, await source.readFile(), (stat.mode & 0o111) === 0 ? 0o644 : 0o755);
    return true;
  } finally {
    await source.close();
  }
}

/**
 * Writes to disk before the rename that publishes the file: a power cut must not leave a skeleton that looks complete
 * but has empty files.
 */
async function writeDurably(path: string, content: Uint8Array, mode: number): Promise<void> {
  const file = await open(path, "wx", mode);
  try {
    await file.writeFile(content);
    await file.chmod(mode);
    await file.datasync();
  } finally {
    await file.close();
  }
}

function ignoreExisting(cause: unknown): false {
  if (!isErrno(cause, "EEXIST")) throw cause;
  return false;
}

function toSkeletonError(cause: unknown, target: string): CaissonError {
  const code = (cause as NodeJS.ErrnoException).code;
  const message = `could not create the skeleton ${target} of the host template`;
  if (code === "ENOSPC" || code === "EDQUOT")
    return new CaissonError("no_space", message, { cause, hint: "Free some space on that disk." });
  if (code === "EACCES" || code === "EPERM" || code === "EROFS") return new CaissonError("denied", message, { cause });
  return new CaissonError("internal", message, { cause });
}
