import { randomBytes } from "node:crypto";
import { readFile, realpath } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { isErrno } from "../../lib/is-errno.ts";
import { lstatOrNull } from "../../lib/lstat-or-null.ts";
import { knowsWorkTree } from "../../sandbox/linked-repository.ts";
import { FolderTree } from "../folder-tree.ts";
import { readLower } from "../read-side.ts";

/** As many symbolic refs in a row as git follows. */
const REFS_FOLLOWED_MAX = 5;
const HASH = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** A repository of the user's as the files it is. No git reads it: its settings could name programs to run. */
export interface RepositoryFiles extends Disposable {
  /** The work tree. */
  root: string;
  /** Of HEAD; of a linked work tree not where objects and branches are. */
  gitDir: FolderTree;
  /** Of objects and branches. */
  common: FolderTree;
  hash: "sha1" | "sha256";
}

/**
 * The repository of a folder or of one above it. Throws `not_found` where there is none, `unsafe` for a `.git` file
 * that leads to a repository that does not know this work tree, `unsupported` for one that keeps its branches or
 * objects in a way we do not write.
 */
export async function openRepository(folder: string): Promise<RepositoryFiles> {
  const { path, root } = await findRepository(folder);
  const gitDir = new FolderTree(path, { follow: false });
  let common = gitDir;
  try {
    const named = await readText(gitDir, "commondir");
    if (named !== null) common = await openCommon(path, named.trim());
    refuseUnknownForms(common, root);
    const hash = /^[ \t]*objectformat[ \t]*=[ \t]*"?sha256/im.test((await readText(common, "config")) ?? "") ? "sha256" : "sha1";
    return {
      root,
      gitDir,
      common,
      hash,
      [Symbol.dispose]() {
        if (common !== gitDir) common[Symbol.dispose]();
        gitDir[Symbol.dispose]();
      },
    };
  } catch (error) {
    if (common !== gitDir) common[Symbol.dispose]();
    gitDir[Symbol.dispose]();
    throw error;
  }
}

/**
 * A bare repository of the user's own, which is named by its path. Throws `not_found` for what is none, `denied` for
 * somebody else's, `unsupported` as `openRepository`.
 */
export function openBareRepository(path: string, options: { hash: RepositoryFiles["hash"] }): RepositoryFiles {
  const common = openFolder(path);
  try {
    const own = process.getuid?.();
    if (own !== undefined && own !== 0 && common.identity.uid !== own)
      throw new CaissonError("denied", `${path} belongs to somebody else`, { hint: "A local remote is a repository of your own." });
    if (common.stat("HEAD")?.isFile() !== true || common.stat("objects") === null)
      throw new CaissonError("not_found", `${path} is not a bare repository`, {
        hint: "It has HEAD, objects and refs in it, and no work tree.",
      });
    refuseUnknownForms(common, path);
    return { root: path, gitDir: common, common, hash: options.hash, [Symbol.dispose]: () => common[Symbol.dispose]() };
  } catch (error) {
    common[Symbol.dispose]();
    throw error;
  }
}

function openFolder(path: string): FolderTree {
  try {
    return new FolderTree(path, { follow: false });
  } catch (error) {
    throw new CaissonError("not_found", `there is no folder ${path}`, { cause: error });
  }
}

async function findRepository(folder: string): Promise<{ path: string; root: string }> {
  for (let root = folder; ; root = dirname(root)) {
    const path = join(root, ".git");
    const found = lstatOrNull(path);
    if (found?.isDirectory()) return { path, root };
    if (found?.isFile()) {
      const named = found.size > 64 * 1024 ? undefined : /^gitdir: (.+)$/m.exec(await readFile(path, "utf8"))?.[1];
      if (named) return { path: await checkedGitDir(resolve(root, named.trim()), root), root };
    }
    if (root === dirname(root)) break;
  }
  throw new CaissonError("not_found", `${folder} is not in a git repository`, { hint: "Apply the changes with `caisson apply` instead." });
}

/**
 * A `.git` file is part of the folder and may say anything: the repository it leads to must know this work tree, or be
 * kept for it by the one around it.
 */
async function checkedGitDir(named: string, root: string): Promise<string> {
  const gitDir = await realpath(named).catch(() => null);
  const here = await realpath(root);
  if (gitDir !== null) {
    if (knowsWorkTree(gitDir, here)) return gitDir;
    for (let around = dirname(here); ; around = dirname(around)) {
      if (gitDir.startsWith(`${join(around, ".git", "modules")}/`)) return gitDir;
      if (around === dirname(around)) break;
    }
  }
  throw new CaissonError("unsafe", `${join(root, ".git")} leads to ${named}, which does not know this work tree`, {
    hint: "Apply the changes with `caisson apply`, or name another clone with --to.",
  });
}

/** Of a linked work tree, which lies in its repository's `worktrees`. */
async function openCommon(gitDir: string, named: string): Promise<FolderTree> {
  const common = await realpath(resolve(gitDir, named)).catch(() => null);
  if (common === null || dirname(dirname(await realpath(gitDir))) !== common)
    throw new CaissonError("unsafe", `${gitDir} names ${named} as its repository, which it does not lie in`);
  return new FolderTree(common);
}

function refuseUnknownForms(common: FolderTree, root: string): void {
  const refuse = (what: string, hint: string) => {
    throw new CaissonError("unsupported", `the repository of ${root} ${what}`, { hint });
  };
  if (common.stat("reftable") !== null)
    refuse("keeps its branches as a reftable", "Use a clone with loose branches: caisson branch RUN --to CLONE.");
  if (common.stat("objects")?.isDirectory() !== true || common.stat("refs")?.isDirectory() !== true)
    refuse("keeps its objects or branches elsewhere", "Use a plain clone of it: caisson branch RUN --to CLONE.");
  if (common.stat("objects/info/alternates") !== null)
    refuse("borrows objects from another one, which it names itself", "Make it whole: git repack -ad && rm .git/objects/info/alternates");
}

async function readText(tree: FolderTree, path: string): Promise<string | null> {
  const side = await readLower(tree, path);
  return side?.kind === "file" ? side.content.toString("utf8") : null;
}

/** The commit HEAD is at; null while it is on a branch that has none yet. Throws `invalid` for a malformed HEAD. */
export async function headOf(repository: RepositoryFiles): Promise<string | null> {
  let value = await refText(repository.gitDir, "HEAD");
  for (let followed = 0; followed < REFS_FOLLOWED_MAX && value !== null; followed++) {
    if (HASH.test(value)) return value;
    const name = /^ref: (refs\/\S+)$/.exec(value)?.[1];
    if (name === undefined) break;
    value = (await refText(repository.common, name)) ?? (await packedRefs(repository)).get(name) ?? null;
  }
  if (value === null) return null;
  throw new CaissonError("invalid", `${repository.root} has an invalid HEAD`, { hint: "Look at it: git status" });
}

export async function refText(tree: FolderTree, path: string): Promise<string | null> {
  const side = isPlain(path) ? await readLower(tree, path) : null;
  if (side === null) return null;
  const text = side.content.toString("utf8").trim();
  return side.kind === "link" ? `ref: ${text}` : text;
}

const isPlain = (path: string) => path.split("/").every((part) => part !== "" && part !== "." && part !== "..") && !path.includes("\0");

export async function packedRefs({ common }: RepositoryFiles): Promise<Map<string, string>> {
  const lines = ((await readText(common, "packed-refs")) ?? "").split("\n");
  return new Map(
    lines.flatMap((line) =>
      /^[0-9a-f]{40,64} refs\//.test(line) ? [[line.slice(line.indexOf(" ") + 1), line.slice(0, line.indexOf(" "))] as const] : [],
    ),
  );
}

/** Throws `exists` for a branch that is there, or that could not stand beside one that is. */
export async function refuseTaken(repository: RepositoryFiles, name: string): Promise<void> {
  const ref = `refs/heads/${name}`;
  const packed = [...(await packedRefs(repository)).keys()];
  const parents = ref
    .split("/")
    .slice(0, -1)
    .map((_, index, parts) => parts.slice(0, index + 1).join("/"))
    .slice(2);
  const inTheWay = [ref, ...parents].find((each) => packed.includes(each) || repository.common.stat(each)?.isDirectory() === false);
  const below = packed.some((each) => each.startsWith(`${ref}/`)) || hasRefs(repository.common, ref);
  if (inTheWay === undefined && !below) return;
  const taken =
    inTheWay === ref ? `there is a branch ${name} already` : `a branch ${name} cannot stand beside ${inTheWay ?? "those below it"}`;
  throw new CaissonError("exists", taken, { hint: "Choose another name with --name." });
}

function hasRefs(common: FolderTree, folder: string): boolean {
  return common.entries(folder).some((entry) => !entry.isDirectory() || hasRefs(common, `${folder}/${entry.name}`));
}

export interface NewFiles {
  /** Whose they are, for root working on somebody else's repository. */
  owner: { uid: number; gid: number } | null;
}

/** Brings objects that git wrote into a folder of ours to the repository; one that is there stays. */
export async function addObjects(repository: RepositoryFiles, from: string, options: NewFiles): Promise<void> {
  using fresh = new FolderTree(from);
  for (const { name: folder } of fresh.entries("")) {
    if (!/^[0-9a-f]{2}$/.test(folder)) continue;
    makeFolders(repository.common, `objects/${folder}`, options);
    for (const { name } of fresh.entries(folder)) {
      const target = `objects/${folder}/${name}`;
      const side = repository.common.stat(target) === null ? await readLower(fresh, `${folder}/${name}`) : null;
      if (side === null) continue;
      const temporary = `objects/${folder}/tmp_obj_${randomBytes(8).toString("hex")}`;
      await writeNew(repository.common, temporary, { ...options, content: side.content, mode: 0o444 });
      repository.common.rename(temporary, target);
    }
    repository.common.syncFolder(`objects/${folder}`);
  }
}

export function makeFolders(tree: FolderTree, path: string, { owner }: NewFiles): void {
  const parts = path.split("/");
  for (let depth = 1; depth <= parts.length; depth++) {
    const folder = parts.slice(0, depth).join("/");
    try {
      tree.mkdir(folder);
    } catch (error) {
      if (isErrno(error, "EEXIST")) continue;
      throw error;
    }
    if (owner) tree.chown(folder, owner);
  }
}

export async function writeNew(tree: FolderTree, path: string, file: NewFiles & { content: Buffer; mode: number }): Promise<void> {
  await using handle = await tree.createFile(path);
  await handle.writeFile(file.content);
  await handle.chmod(file.mode & ~process.umask());
  if (file.owner) await handle.chown(file.owner.uid, file.owner.gid);
  await handle.sync();
}
