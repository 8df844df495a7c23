import { isUtf8 } from "node:buffer";
import {
  closeSync,
  constants,
  type Dirent,
  fchmodSync,
  fstatSync,
  fsyncSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  type PathLike,
  readdirSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  type Stats,
  symlinkSync,
  unlinkSync,
} from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { CaissonError } from "../contract/error.ts";
import { isErrno } from "../lib/is-errno.ts";

/** Missing from Node's constants; the same on every architecture we run on. */
const O_PATH = 0o10000000;
const FOLDER = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Folders kept open for reading, so that files side by side cost one walk. */
const FOLDERS_OPEN_MAX = 64;

/**
 * A folder of the user's, reached by descriptors that cannot leave it. Every path is relative to it and walked one name
 * at a time from one open folder to the next without following a link; the last name is acted on relative to the folder
 * that holds it (`/proc/self/fd/N/name` is how Node says `openat`). So whatever somebody exchanges for a link
 * meanwhile, nothing outside is read, written or removed. Calls are synchronous: a descriptor's number must not be
 * reused between its use in a path and its close.
 *
 * Throws `unsafe` for a path with `..` and the like, and where a link is on the way; otherwise what the kernel says, as
 * an errno.
 */
export class FolderTree implements Disposable {
  readonly #root: number;
  readonly #open = new Map<string, number>();
  /** As it was named. */
  readonly path: string;

  /**
   * The folder itself is the user's word and may be reached through links, unless `follow` is false: then its last name
   * is none. Throws ENOENT, ENOTDIR, EACCES.
   */
  constructor(path: string, options: { follow?: boolean } = {}) {
    this.path = path;
    this.#root = openSync(path, options.follow === false ? FOLDER : O_PATH | constants.O_DIRECTORY);
  }

  /** Which folder this is, whatever it is called. */
  get identity(): { device: number; inode: number; uid: number; gid: number } {
    const { dev, ino, uid, gid } = fstatSync(this.#root);
    return { device: dev, inode: ino, uid, gid };
  }

  /**
   * What is there, a link itself and not where it leads. Null when nothing is, also because something other than a
   * folder is on the way.
   */
  stat(path: string): Stats | null {
    const at = this.#find(path);
    if (at === null) return null;
    return lstatSync(at, { throwIfNoEntry: false }) ?? null;
  }

  /** Null when it is no link. */
  readLink(path: string): Buffer | null {
    const at = this.#find(path);
    try {
      return at === null ? null : readlinkSync(at, "buffer");
    } catch (error) {
      if (isErrno(error, "ENOENT", "EINVAL", "ENOTDIR")) return null;
      throw error;
    }
  }

  /** What a folder holds; nothing when it is none, or may not be read. */
  entries(path: string): Dirent[] {
    const fd = this.#folder(path);
    if (fd === null) return [];
    return orNothing(() => readdirSync(descriptor(fd), { withFileTypes: true }));
  }

  /**
   * The same with names that need not be UTF-8: every other byte is a lone surrogate, and every method takes such a
   * name for those bytes.
   */
  exactEntries(path: string): { name: string; kind: "folder" | "link" | "other" }[] {
    const fd = this.#folder(path);
    if (fd === null) return [];
    const found = orNothing(() => readdirSync(descriptor(fd), { withFileTypes: true, encoding: "buffer" }));
    return found.map((entry) => ({
      name: nameOfBytes(entry.name),
      kind: entry.isDirectory() ? "folder" : entry.isSymbolicLink() ? "link" : "other",
    }));
  }

  /**
   * A regular file, for reading: looked at before it is opened, so that no device or FIFO ever is. Null when there is
   * none.
   */
  async openFile(path: string): Promise<FileHandle | null> {
    const at = this.#find(path);
    if (at === null) return null;
    let fd: number;
    try {
      fd = openSync(at, O_PATH | constants.O_NOFOLLOW);
    } catch (error) {
      if (isErrno(error, "ENOENT", "ENOTDIR")) return null;
      throw error;
    }
    try {
      return fstatSync(fd).isFile() ? await open(descriptor(fd), constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY) : null;
    } finally {
      closeSync(fd);
    }
  }

  /** A file that was not there. Throws EEXIST, for a link in its place, too. */
  async createFile(path: string): Promise<FileHandle> {
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    const { fd, name } = this.#walkToParent(path);
    try {
      return await open(within(fd, name), flags, 0o600);
    } finally {
      closeSync(fd);
    }
  }

  mkdir(path: string, mode?: number): void {
    this.#act(path, (at) => mkdirSync(at, mode === undefined ? {} : { mode }));
  }

  symlink(target: Buffer, path: string): void {
    this.#act(path, (at) => symlinkSync(target, at));
  }

  unlink(path: string): void {
    this.#act(path, unlinkSync);
  }

  rmdir(path: string): void {
    this.#act(path, rmdirSync);
  }

  /** A link's own owner, not that of where it leads. */
  chown(path: string, owner: { uid: number; gid: number }): void {
    this.#act(path, (at) => lchownSync(at, owner.uid, owner.gid));
  }

  chmodFolder(path: string, mode: number): void {
    this.#act(path, (at) => withFolder(at, (fd) => fchmodSync(fd, mode)));
  }

  /** Makes names that came and went in a folder last through a power cut. */
  syncFolder(path: string): void {
    if (path === "") withFolder(`${descriptor(this.#root)}/.`, fsyncSync);
    else this.#act(path, (at) => withFolder(at, fsyncSync));
  }

  rename(from: string, to: string): void {
    this.#act(from, (source) => this.#act(to, (target) => renameSync(source, target)));
  }

  /** A second name of a file, or of a link itself. */
  link(from: string, to: string): void {
    this.#act(from, (source) => this.#act(to, (target) => linkSync(source, target)));
  }

  [Symbol.dispose](): void {
    this.#forget();
    closeSync(this.#root);
  }

  /** Effects walk anew each time: a folder that was moved away since it was looked at is not acted on. */
  #act<Result>(path: string, effect: (at: PathLike) => Result): Result {
    this.#forget();
    const { fd, name } = this.#walkToParent(path);
    try {
      return effect(within(fd, name));
    } finally {
      closeSync(fd);
    }
  }

  #walkToParent(path: string): { fd: number; name: string } {
    const parts = partsOf(path);
    const name = parts.pop() as string;
    let fd = openSync(`${descriptor(this.#root)}/.`, FOLDER);
    for (const [index, part] of parts.entries()) {
      try {
        const next = openFolder(within(fd, part), () => [this.path, ...parts.slice(0, index + 1)].join("/"));
        closeSync(fd);
        fd = next;
      } catch (error) {
        closeSync(fd);
        throw error;
      }
    }
    return { fd, name };
  }

  #find(path: string): PathLike | null {
    const parts = partsOf(path);
    const name = parts.pop() as string;
    const fd = this.#folder(parts.join("/"));
    return fd === null ? null : within(fd, name);
  }

  #folder(path: string): number | null {
    if (path === "") return this.#root;
    const known = this.#open.get(path);
    if (known !== undefined) return known;
    const parts = partsOf(path);
    const name = parts.pop() as string;
    const parent = this.#folder(parts.join("/"));
    if (parent === null) return null;
    try {
      const fd = openSync(within(parent, name), FOLDER);
      if (this.#open.size >= FOLDERS_OPEN_MAX) this.#forget();
      this.#open.set(path, fd);
      return fd;
    } catch (error) {
      if (isErrno(error, "ENOENT", "ENOTDIR", "ELOOP", "EACCES", "ENAMETOOLONG")) return null;
      throw error;
    }
  }

  #forget(): void {
    for (const fd of this.#open.values()) closeSync(fd);
    this.#open.clear();
  }
}

const descriptor = (fd: number) => `/proc/self/fd/${fd}`;

function within(fd: number, name: string): PathLike {
  const at = `${descriptor(fd)}/`;
  return name.isWellFormed() ? at + name : Buffer.concat([Buffer.from(at), bytesOfName(name)]);
}

const ESCAPED = 0xdc00;

function bytesOfName(name: string): Buffer {
  const parts = [...name].map((character) => {
    const code = character.charCodeAt(0) - ESCAPED;
    return character.length === 1 && code >= 0x80 && code <= 0xff ? Buffer.from([code]) : Buffer.from(character);
  });
  return Buffer.concat(parts);
}

function nameOfBytes(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString("utf8");
  return [...bytes].map((byte) => String.fromCharCode(byte < 0x80 ? byte : ESCAPED + byte)).join("");
}

function orNothing<Entry>(read: () => Entry[]): Entry[] {
  try {
    return read();
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR", "EACCES", "EPERM")) return [];
    throw error;
  }
}

function partsOf(path: string): string[] {
  const parts = path.split("/");
  if (path.includes("\0") || parts.some((part) => part === "" || part === "." || part === ".."))
    throw new CaissonError("unsafe", `${JSON.stringify(path)} leaves the folder`);
  return parts;
}

function openFolder(at: PathLike, nameOf: () => string): number {
  try {
    return openSync(at, FOLDER);
  } catch (error) {
    if (isErrno(error, "ENOTDIR", "ELOOP") && lstatSync(at, { throwIfNoEntry: false })?.isSymbolicLink())
      throw new CaissonError("unsafe", `${nameOf()} is a link`, { cause: error });
    throw error;
  }
}

function withFolder(at: PathLike, effect: (fd: number) => void): void {
  const fd = openSync(at, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    effect(fd);
  } finally {
    closeSync(fd);
  }
}
