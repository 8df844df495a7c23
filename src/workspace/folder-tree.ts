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
  readSync,
  renameSync,
  rmdirSync,
  type Stats,
  symlinkSync,
  unlinkSync,
} from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { CaissonError } from "../contract/error/error.ts";
import { isErrno } from "../lib/failures.ts";

/** Missing from Node's constants, but the same on every architecture we support. */
const O_PATH = 0o10000000;
const FOLDER = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Folders kept open for reading, so that neighboring files need only one walk. */
const FOLDERS_OPEN_MAX = 64;

/**
 * A user's folder, reached by descriptors that cannot leave it.
 * Every path is relative to it and walked one name at a time, from one open folder to the next, without following
 * links. The last name is used relative to its open folder (`/proc/self/fd/N/name` is Node's way to call `openat`). So
 * nothing outside is read, written or removed, even if another process swaps in a link at any moment. Calls are
 * synchronous: a descriptor's number must not be reused between its use in a path and its close.
 * Throws `unsafe` for paths with `..` and the like and for links in the path; otherwise the kernel's errno.
 */
export class FolderTree implements Disposable {
  readonly #root: number;
  readonly #open = new Map<string, number>();
  /** The path as the caller gave it. */
  readonly path: string;

  /**
   * Trusts the caller about the folder itself, so links may lead to it. If `follow` is false, the last name must not be
   * a link. Throws ENOENT, ENOTDIR, EACCES.
   */
  constructor(path: string, options: { follow?: boolean } = {}) {
    this.path = path;
    this.#root = openSync(path, options.follow === false ? FOLDER : O_PATH | constants.O_DIRECTORY);
  }

  /** Identifies the folder regardless of its name. */
  get identity(): { device: number; inode: number; uid: number; gid: number } {
    const { dev, ino, uid, gid } = fstatSync(this.#root);
    return { device: dev, inode: ino, uid, gid };
  }

  /**
   * Returns the status of a path, of a link itself and not of its target. Null if it does not exist or a parent is not
   * a folder.
   */
  stat(path: string): Stats | null {
    const at = this.#find(path);
    if (at === null) return null;
    return lstatSync(at, { throwIfNoEntry: false }) ?? null;
  }

  /** Returns a link's target, or null if the path is not a link. */
  readLink(path: string): Buffer | null {
    const at = this.#find(path);
    try {
      return at === null ? null : readlinkSync(at, "buffer");
    } catch (error) {
      if (isErrno(error, "ENOENT", "EINVAL", "ENOTDIR")) return null;
      throw error;
    }
  }

  /** Returns the entries of a folder; empty if it is not a folder or may not be read. */
  entries(path: string): Dirent[] {
    const fd = this.#folder(path);
    if (fd === null) return [];
    return orNothing(() => readdirSync(descriptor(fd), { withFileTypes: true }));
  }

  /**
   * Like `entries`, but for names that need not be UTF-8: each byte that is not UTF-8 becomes a lone surrogate. Every
   * method accepts such a name and uses the original bytes.
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
   * Opens a regular file for reading, or returns null. Checks the kind before opening, so it never opens a device or
   * FIFO.
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

  /**
   * Reads a small regular file into a buffer at once, which is several times faster than `openFile` for many files.
   * Returns its length, or null if it is not a file or fills the buffer.
   */
  readInto(buffer: Buffer, path: string): number | null {
    const at = this.#find(path);
    if (at === null || lstatSync(at, { throwIfNoEntry: false })?.isFile() !== true) return null;
    // Without blocking, should another process put a FIFO in its place.
    const fd = openSync(at, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY);
    try {
      const length = fstatSync(fd).isFile() ? readSync(fd, buffer, 0, buffer.length, 0) : buffer.length;
      return length < buffer.length ? length : null;
    } finally {
      closeSync(fd);
    }
  }

  /** Creates a new file. Throws EEXIST even if a link is in its place. */
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

  /** Changes the owner; of a link itself, not of its target. */
  chown(path: string, owner: { uid: number; gid: number }): void {
    this.#act(path, (at) => lchownSync(at, owner.uid, owner.gid));
  }

  chmodFolder(path: string, mode: number): void {
    this.#act(path, (at) => withFolder(at, (fd) => fchmodSync(fd, mode)));
  }

  /** Makes added and removed names in a folder survive a power failure. */
  syncFolder(path: string): void {
    if (path === "") withFolder(`${descriptor(this.#root)}/.`, fsyncSync);
    else this.#act(path, (at) => withFolder(at, fsyncSync));
  }

  rename(from: string, to: string): void {
    this.#act(from, (source) => this.#act(to, (target) => renameSync(source, target)));
  }

  /** Creates a second name for a file, or for a link itself. */
  link(from: string, to: string): void {
    this.#act(from, (source) => this.#act(to, (target) => linkSync(source, target)));
  }

  [Symbol.dispose](): void {
    this.#forget();
    closeSync(this.#root);
  }

  /** Effects walk the path again each time, so they never act on a folder that was moved after the last read. */
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
