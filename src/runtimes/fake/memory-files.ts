import { ignoring } from "../../lib/failures.ts";
import type { FileKind, WatchKind } from "../../sandbox/sandbox.ts";
import { failure } from "./failure.ts";

interface Meta {
  mode: number;
  uid: number;
  gid: number;
  modifiedMs: number;
}
export interface FileNode extends Meta {
  kind: "file";
  content: Buffer;
}
export interface FolderNode extends Meta {
  kind: "directory";
  children: Map<string, MemoryNode>;
}
interface LinkNode extends Meta {
  kind: "link";
  target: string;
}
interface FifoNode extends Meta {
  kind: "fifo";
}
export type MemoryNode = FileNode | FolderNode | LinkNode | FifoNode;

export interface MemoryFileInfo extends Meta {
  name: string;
  kind: FileKind;
  sizeBytes: number;
  linkTarget: string;
}

export type ChangeListener = (kind: WatchKind, path: string, isDirectory: boolean) => void;

const LINKS_MAX = 40;
const NAME_BYTES_MAX = 255;

/**
 * A file tree in memory with links, modes, root and one other user. Throws the errors that a guest would answer with.
 */
export class MemoryFiles {
  readonly #now: () => number;
  readonly #listeners = new Set<ChangeListener>();
  readonly root: FolderNode;

  constructor(options: { now: () => number; root?: FolderNode }) {
    this.#now = options.now;
    this.root = options.root ?? { kind: "directory", children: new Map(), mode: 0o755, uid: 0, gid: 0, modifiedMs: this.#now() };
  }

  /** Returns a separate tree with the same content. Contents never change in place, so both trees share them. */
  clone(): MemoryFiles {
    return new MemoryFiles({ now: this.#now, root: cloneNode(this.root) as FolderNode });
  }

  onChange(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Returns the node at a path. Throws `not_found`, `not_directory`. */
  node(path: string, options: { follow?: boolean } = {}): MemoryNode {
    const { node } = this.#walk(path, options.follow ?? true);
    if (node === null) throw failure("not_found", `${path}: no such file or folder`);
    return node;
  }

  exists(path: string): boolean {
    return ignoring("nothing exists there", () => this.node(path)) !== undefined;
  }

  stat(path: string, options: { follow: boolean }): MemoryFileInfo {
    return infoOf(path, this.node(path, options));
  }

  list(path: string, options: { depth: number; entriesMax: number }): { entries: MemoryFileInfo[]; truncated: boolean } {
    const entries: MemoryFileInfo[] = [];
    const visit = (folder: FolderNode, prefix: string, depth: number): boolean => {
      for (const [name, node] of folder.children) {
        if (entries.length === options.entriesMax) return true;
        entries.push(infoOf(prefix + name, node));
        if (node.kind === "directory" && depth < options.depth && visit(node, `${prefix}${name}/`, depth + 1)) return true;
      }
      return false;
    };
    return { truncated: visit(this.#folder(path), "", 1), entries };
  }

  mkdir(path: string, options: { parents: boolean; mode: number; uid: number }): void {
    const { parent, name, node } = this.#walk(path, true, options.parents ? options.uid : undefined);
    if (node !== null) {
      if (options.parents && node.kind === "directory") return;
      throw failure("exists", `${path} exists`);
    }
    this.#put(parent, name, this.#folderNode(options.uid, options.mode), path, "created");
  }

  move(from: string, to: string, options: { replace: boolean }): void {
    const source = this.#walk(from, false);
    if (source.node === null) throw failure("not_found", `${from}: no such file or folder`);
    const target = this.#walk(to, false);
    if (target.node !== null && !options.replace) throw failure("exists", `${to} exists`);
    if (target.node?.kind === "directory" && target.node.children.size > 0) throw failure("not_empty", `${to} is not empty`);
    if (`${to}/`.startsWith(`${from}/`)) throw failure("invalid", "a folder cannot be moved into itself");
    const isFolder = source.node.kind === "directory";
    source.parent.children.delete(source.name);
    this.#tell("removed", from, isFolder);
    this.#put(target.parent, target.name, source.node, to, "movedHere");
  }

  remove(path: string, options: { recursive: boolean }): void {
    const { parent, name, node } = this.#walk(path, false);
    if (node === null) throw failure("not_found", `${path}: no such file or folder`);
    if (node.kind === "directory" && node.children.size > 0 && !options.recursive) throw failure("not_empty", `${path} is not empty`);
    parent.children.delete(name);
    this.#tell("removed", path, node.kind === "directory");
  }

  /** Returns the content of a regular file. Throws `is_directory`, `unsupported`, `denied`. */
  read(path: string, uid: number): Buffer {
    const node = this.node(path);
    if (node.kind === "directory") throw failure("is_directory", `${path} is a folder`);
    if (node.kind !== "file") throw failure("unsupported", `${path} is not a regular file`);
    if (!allows(node, uid, 0o4)) throw failure("denied", `${path} is not readable`);
    return node.content;
  }

  write(
    path: string,
    content: Buffer,
    options: { mode?: number; parents?: boolean; how?: "replace" | "append" | "create"; uid: number },
  ): void {
    const { how = "replace", uid } = options;
    const { parent, name, node } = this.#walk(path, true, options.parents ? uid : undefined);
    if (node !== null && how === "create") throw failure("exists", `${path} exists`);
    if (node?.kind === "directory") throw failure("is_directory", `${path} is a folder`);
    if (node !== null && node.kind !== "file") throw failure("unsupported", `${path} is not a regular file`);
    if (node !== null && !allows(node, uid, 0o2)) throw failure("denied", `${path} is not writable`);
    const whole = how === "append" && node !== null ? Buffer.concat([node.content, content]) : Buffer.from(content);
    const mode = options.mode ?? node?.mode ?? 0o644;
    const fresh: FileNode = { kind: "file", content: whole, mode, uid: node?.uid ?? uid, gid: node?.gid ?? uid, modifiedMs: this.#now() };
    this.#put(parent, name, fresh, path, node === null ? "created" : "modified");
  }

  link(target: string, path: string, uid: number): void {
    this.#create(path, { kind: "link", target, mode: 0o777, uid, gid: uid, modifiedMs: this.#now() });
  }

  fifo(path: string, uid: number): void {
    this.#create(path, { kind: "fifo", mode: 0o644, uid, gid: uid, modifiedMs: this.#now() });
  }

  #create(path: string, fresh: MemoryNode): void {
    const { parent, name, node } = this.#walk(path, false);
    if (node !== null) throw failure("exists", `${path} exists`);
    this.#put(parent, name, fresh, path, "created");
  }

  #folder(path: string): FolderNode {
    const node = this.node(path);
    if (node.kind !== "directory") throw failure("not_directory", `${path} is not a folder`);
    return node;
  }

  #put(parent: FolderNode, name: string, node: MemoryNode, path: string, kind: WatchKind): void {
    if (Buffer.byteLength(name) > NAME_BYTES_MAX) throw failure("invalid", `the name ${name.slice(0, 20)}… is too long`);
    parent.children.set(name, node);
    parent.modifiedMs = this.#now();
    this.#tell(kind, path, node.kind === "directory");
  }

  #tell(kind: WatchKind, path: string, isDirectory: boolean): void {
    for (const listener of this.#listeners) listener(kind, path, isDirectory);
  }

  #folderNode(uid: number, mode = 0o755): FolderNode {
    return { kind: "directory", children: new Map(), mode, uid, gid: uid, modifiedMs: this.#now() };
  }

  /**
   * Resolves a path to its folder, its name there, and its node if it exists. Creates missing folders on the way if
   * `makeAs` is given.
   */
  #walk(path: string, follow: boolean, makeAs?: number): { parent: FolderNode; name: string; node: MemoryNode | null } {
    let links = 0;
    const walk = (start: FolderNode[], components: string[]): { parent: FolderNode; name: string; node: MemoryNode | null } => {
      const trail = [...start];
      for (const [index, component] of components.entries()) {
        const folder = trail.at(-1) as FolderNode;
        if (component === "..") {
          if (trail.length > 1) trail.pop();
          continue;
        }
        const isLast = index === components.length - 1;
        let node = folder.children.get(component) ?? null;
        if (node?.kind === "link" && (follow || !isLast)) {
          links += 1;
          if (links > LINKS_MAX) throw failure("invalid", `${path}: too many links`);
          const from = node.target.startsWith("/") ? [this.root] : trail;
          return walk(from, [...splitPath(node.target), ...components.slice(index + 1)]);
        }
        if (isLast) return { parent: folder, name: component, node };
        if (node === null && makeAs !== undefined) {
          node = this.#folderNode(makeAs);
          folder.children.set(component, node);
        }
        if (node === null) throw failure("not_found", `${path}: no such file or folder`);
        if (node.kind !== "directory") throw failure("not_directory", `${path}: ${component} is not a folder`);
        trail.push(node);
      }
      const folder = trail.at(-1) as FolderNode;
      return { parent: trail.at(-2) ?? folder, name: ".", node: folder };
    };
    return walk([this.root], splitPath(path));
  }
}

function splitPath(path: string): string[] {
  return path.split("/").filter((part) => part !== "" && part !== ".");
}

function infoOf(name: string, node: MemoryNode): MemoryFileInfo {
  const { kind, mode, uid, gid, modifiedMs } = node;
  const linkTarget = node.kind === "link" ? node.target : "";
  const sizeBytes = node.kind === "file" ? node.content.length : linkTarget.length;
  return { name, kind, mode, uid, gid, modifiedMs, linkTarget, sizeBytes };
}

export function allows(node: Meta, uid: number, bits: number): boolean {
  if (uid === 0) return true;
  const shift = node.uid === uid ? 6 : node.gid === uid ? 3 : 0;
  return ((node.mode >> shift) & bits) === bits;
}

function cloneNode(node: MemoryNode): MemoryNode {
  if (node.kind !== "directory") return { ...node };
  return { ...node, children: new Map([...node.children].map(([name, child]) => [name, cloneNode(child)])) };
}
