import { closeSync, constants, openSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { CaissonError } from "../contract/error.ts";
import { uploadOfTree } from "./uploaded-tree.ts";

/** A place in a shared folder at which the state folder, or a part of it, could be seen. */
export interface StatePlace {
  /** Relative to the shared folder. */
  path: string;
  /** Which folder is there, so that whoever covers it knows that it covered the right one. */
  device: bigint;
  inode: bigint;
}

/** Where the state folder lies, looked at once. */
export interface StateView {
  /**
   * The places of a folder (absolute, without links) at which the state folder could be seen. `mountsBelow`: what is
   * mounted below the folder is seen, too; otherwise only the folder's own file system is. Empty for a folder inside
   * the state folder: see `refuse`.
   */
  placesIn(folder: string, options: { mountsBelow: boolean }): StatePlace[];
  /**
   * Throws `invalid` for the state folder and for what lies in it. An empty folder below a layer shows nothing of it:
   * sessions have one. An upload's files are somebody's folder, which only happens to be kept there.
   */
  refuse(folder: string, options: { access: "overlay" | "ro" | "rw" }): void;
}

/**
 * The state folder holds every guest's socket and token, the network's keys, the log and other sandboxes' files:
 * whoever shares a folder with a sandbox must keep the places of it from the sandbox. They are found by where folders
 * lie in their file systems, so a bind mount elsewhere is found as well.
 */
export function viewState(stateDir: string): StateView {
  const mounts = readMounts();
  const kept = privateFolders(stateDir, mounts);
  return {
    placesIn(folder, { mountsBelow }) {
      const below = mountsBelow ? mounts.filter(({ point }) => isBelow(point, folder)) : [];
      const roots = [
        { at: "", ...locate(folder, mounts) },
        ...below.map(({ point, device, root }) => ({ at: relativeTo(point, folder), device, path: root })),
      ];
      const found = roots.flatMap((root) => kept.flatMap((each) => placeIn(folder, root, each)));
      return [...new Map(found.map((place) => [place.path, place])).values()];
    },
    refuse(folder, { access }) {
      const { device, path } = locate(folder, mounts);
      const within = kept.find((each) => each.device === device && (each.path === path || isBelow(path, each.path)));
      if (within === undefined) return;
      if (access === "overlay" && within.path !== path && readdirSync(folder).length === 0) return;
      if (access !== "rw" && uploadOfTree(realpathSync(stateDir), realpathSync(folder)) !== null) return;
      throw new CaissonError("invalid", `${folder} is in the folder where Caisson keeps its own state`, {
        hint: "Code that runs there could read keys and change other sandboxes. Give a folder of your own.",
      });
    },
  };
}

/** Where one private folder is seen through one file system that the shared folder shows at `root.at`. */
function placeIn(folder: string, root: Located & { at: string }, kept: Located & { at: string }): StatePlace[] {
  if (root.device !== kept.device) return [];
  // The second: a mount that shows the private folder or a part of it as a whole.
  const whole = root.path === kept.path || isBelow(root.path, kept.path);
  if (!whole && !isBelow(kept.path, root.path)) return [];
  const path = whole ? root.at : join(root.at, relativeTo(kept.path, root.path));
  const status = statSync(whole ? join(folder, root.at) : kept.at, { bigint: true, throwIfNoEntry: false });
  return path === "" || status === undefined ? [] : [{ path, device: status.dev, inode: status.ino }];
}

interface Located {
  device: string;
  /** In its file system, whatever is mounted where. */
  path: string;
}

/** The state folder, and what of it lies elsewhere: file systems mounted in it, and entries that are links. */
function privateFolders(stateDir: string, mounts: readonly Mount[]): (Located & { at: string })[] {
  const real = realOrNull(stateDir);
  if (real === null) return [];
  const linked = readdirSync(real, { withFileTypes: true })
    .filter((entry) => entry.isSymbolicLink())
    .flatMap(({ name }) => realOrNull(join(real, name)) ?? []);
  return [
    ...[real, ...linked].map((at) => ({ at, ...locate(at, mounts) })),
    ...mounts.filter(({ point }) => isBelow(point, real)).map(({ point, device, root }) => ({ at: point, device, path: root })),
  ];
}

function realOrNull(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
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

/** From the text of /proc/self/mountinfo, read as latin1. */
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

/** O_PATH, which Node has no name for: nothing is read, so it works without the right to. */
const PATH_ONLY = 0o10_000_000;

function locate(path: string, mounts: readonly Mount[]): Located {
  const fd = openSync(path, PATH_ONLY | constants.O_NOFOLLOW);
  try {
    const id = /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "latin1"))?.[1];
    const mount = mounts.find((each) => each.id === id);
    if (mount === undefined) throw new CaissonError("internal", `the mount of ${path} is not among this process's`);
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
