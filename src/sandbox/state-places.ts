import { closeSync, constants, openSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { CaissonError } from "../contract/error/error.ts";
import { realPathOrNull } from "../lib/paths.ts";
import { uploadOfTree } from "./uploaded-tree.ts";

/** A place in a shared folder at which the state folder, or a part of it, would be visible. */
export interface StatePlace {
  /** Relative to the shared folder. */
  path: string;
  /** Identifies the existing folder, so the code that hides it can check that it hid the right one. */
  device: bigint;
  inode: bigint;
}

/** The location of the state folder, read once. */
export interface StateView {
  /**
   * Returns the places in a folder (absolute, without links) at which the state folder would be visible. With
   * `mountsBelow`, file systems that are mounted below the folder are visible too; otherwise only the folder's own.
   * Empty for a folder inside the state folder: see `refuse`.
   */
  placesIn(folder: string, options: { mountsBelow: boolean }): StatePlace[];
  /**
   * Throws `invalid` for the state folder and everything in it. Exceptions are an empty folder below a layer, which
   * reveals nothing and which sessions need, and the files of an upload for reading, which come from a user's folder.
   */
  refuse(folder: string, options: { access: "overlay" | "ro" | "rw" }): void;
}

/**
 * Finds where the state folder is visible. It holds every guest's socket and token, the network's keys, the log and
 * other sandboxes' files, so code that shares a folder with a sandbox must hide these places. They are identified by
 * device and inode, which also finds bind mounts.
 */
export function viewState(stateDir: string): StateView {
  const mounts = readMounts();
  const folders = privateFolders(stateDir, mounts);
  return {
    placesIn(folder, { mountsBelow }) {
      const below = mountsBelow ? mounts.filter(({ point }) => isBelow(point, folder)) : [];
      const roots = [
        { at: "", ...locate(folder, mounts) },
        ...below.map(({ point, device, root }) => ({ at: relativeTo(point, folder), device, path: root })),
      ];
      const found = roots.flatMap((root) => folders.flatMap((each) => placeIn(folder, root, each)));
      return [...new Map(found.map((place) => [place.path, place])).values()];
    },
    refuse(folder, { access }) {
      const { device, path } = locate(folder, mounts);
      const within = folders.find((each) => each.device === device && (each.path === path || isBelow(path, each.path)));
      if (within === undefined) return;
      if (access === "overlay" && within.path !== path && readdirSync(folder).length === 0) return;
      if (access !== "rw" && uploadOfTree(realpathSync(stateDir), realpathSync(folder)) !== null) return;
      throw new CaissonError("invalid", `${folder} is in the folder where Caisson keeps its own state`, {
        hint: "Code that runs there could read keys and change other sandboxes. Pass a folder of your own.",
      });
    },
  };
}

/**
 * Returns where one private folder is visible through one file system, which the shared folder contains at `root.at`.
 */
function placeIn(folder: string, root: Located & { at: string }, privateFolder: Located & { at: string }): StatePlace[] {
  if (root.device !== privateFolder.device) return [];
  // If `whole`, a mount shows the private folder or a part of it.
  const whole = root.path === privateFolder.path || isBelow(root.path, privateFolder.path);
  if (!whole && !isBelow(privateFolder.path, root.path)) return [];
  const path = whole ? root.at : join(root.at, relativeTo(privateFolder.path, root.path));
  const status = statSync(whole ? join(folder, root.at) : privateFolder.at, { bigint: true, throwIfNoEntry: false });
  return path === "" || status === undefined ? [] : [{ path, device: status.dev, inode: status.ino }];
}

interface Located {
  device: string;
  /** The path within its file system, regardless of mounts. */
  path: string;
}

/** Returns the state folder and its parts elsewhere: file systems mounted in it, and the targets of links. */
function privateFolders(stateDir: string, mounts: readonly Mount[]): (Located & { at: string })[] {
  const real = realPathOrNull(stateDir);
  if (real === null) return [];
  const linked = readdirSync(real, { withFileTypes: true })
    .filter((entry) => entry.isSymbolicLink())
    .flatMap(({ name }) => realPathOrNull(join(real, name)) ?? []);
  return [
    ...[real, ...linked].map((at) => ({ at, ...locate(at, mounts) })),
    ...mounts.filter(({ point }) => isBelow(point, real)).map(({ point, device, root }) => ({ at: point, device, path: root })),
  ];
}

interface Mount {
  id: string;
  device: string;
  root: string;
  point: string;
}

function readMounts(): Mount[] {
  return parseMounts(readFileSync("/proc/self/mountinfo", "latin1"));
}

/** Parses /proc/self/mountinfo, read as latin1. */
export function parseMounts(text: string): Mount[] {
  const plain = (field: string) =>
    Buffer.from(
      field.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8))),
      "latin1",
    ).toString();
  return text.split("\n").flatMap((line) => {
    const [id, , device, root, point] = line.split(" ");
    return id === undefined || device === undefined || root === undefined || point === undefined
      ? []
      : [{ id, device, root: plain(root), point: plain(point) }];
  });
}

/** O_PATH, for which Node has no name. It opens without reading, so it needs no read permission. */
const PATH_ONLY = 0o10_000_000;

function locate(path: string, mounts: readonly Mount[]): Located {
  const fd = openSync(path, PATH_ONLY | constants.O_NOFOLLOW);
  try {
    const id = /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "latin1"))?.[1];
    const mount = mounts.find((each) => each.id === id);
    if (mount === undefined) throw new CaissonError("internal", `the mount of ${path} is not in this process's mount table`);
    return { device: mount.device, path: join(mount.root, relativeTo(path, mount.point)) };
  } finally {
    closeSync(fd);
  }
}

function isBelow(path: string, folder: string): boolean {
  return path !== folder && path.startsWith(folder === "/" ? "/" : `${folder}/`);
}

function relativeTo(path: string, folder: string): string {
  return path === folder ? "" : path.slice(folder === "/" ? 1 : folder.length + 1);
}
