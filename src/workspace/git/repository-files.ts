import { randomBytes } from "node:crypto";
import { readFile, realpath } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { isErrno } from "../../lib/failures.ts";
import { lstatOrNull, realPathOrNull } from "../../lib/paths.ts";
import { knowsWorkTree } from "../../sandbox/linked-repository.ts";
import { FolderTree } from "../folder-tree.ts";
import { readLower } from "../read-side.ts";

/** The number of symbolic refs in a row that git follows. */
const REFS_FOLLOWED_MAX = 5;
const HASH = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** The files of a user's repository. Git does not read it, because its settings could name programs to run. */
export interface RepositoryFiles extends Disposable {
  /** The root of the work tree. */
  root: string;
  /** The folder with HEAD. In a linked work tree, objects and branches are elsewhere. */
  gitDir: FolderTree;
  /** The folder with objects and branches. */
  common: FolderTree;
  hash: "sha1" | "sha256";
}

/**
 * Opens the repository of a folder or of one above it. Throws `not_found` without a repository, `unsafe` if a `.git`
 * file names a repository that does not know this work tree, `unsupported` if it stores branches or objects in a form
 * that we do not write.
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
 * Opens a user's bare repository by its path. Throws `not_found` for other folders, `denied` for another user's
 * repository, `unsupported` like `openRepository`.
 */
export function openBareRepository(path: string, options: { hash: RepositoryFiles["hash"] }): RepositoryFiles {
  const common = openFolder(path);
  try {
    const own = process.getuid?.();
    if (own !== undefined && own !== 0 && common.identity.uid !== own)
      throw new CaissonError("denied", `${path} belongs to another user`, { hint: "Use a repository that you own." });
    if (common.stat("HEAD")?.isFile() !== true || common.stat("objects") === null)
      throw new CaissonError("not_found", `${path} is not a bare repository`, {
        hint: "A bare repository contains HEAD, objects and refs, and has no work tree.",
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
    throw new CaissonError("not_found", `the folder ${path} does not exist`, { cause: error });
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
 * Checks the repository that a `.git` file names. The file is part of the folder and may contain anything, so the
 * repository must know this work tree, or belong to the submodules of a repository around it.
 */
async function checkedGitDir(named: string, root: string): Promise<string> {
  const gitDir = realPathOrNull(named);
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

/** Opens the main repository of a linked work tree, which must be in its `worktrees`. */
async function openCommon(gitDir: string, named: string): Promise<FolderTree> {
  const common = realPathOrNull(resolve(gitDir, named));
  if (common === null || dirname(dirname(await realpath(gitDir))) !== common)
    throw new CaissonError("unsafe", `${gitDir} names ${named} as its repository, but is not part of it`);
  return new FolderTree(common);
}

function refuseUnknownForms(common: FolderTree, root: string): void {
  const refuse = (what: string, hint: string) => {
    throw new CaissonError("unsupported", `the repository of ${root} ${what}`, { hint });
  };
  if (common.stat("reftable") !== null)
    refuse("stores its branches as a reftable", "Use a clone with loose branches: caisson branch RUN --to CLONE.");
  if (common.stat("objects")?.isDirectory() !== true || common.stat("refs")?.isDirectory() !== true)
    refuse("stores its objects or branches elsewhere", "Use a plain clone of it: caisson branch RUN --to CLONE.");
  if (common.stat("objects/info/alternates") !== null)
    refuse("borrows objects from another repository", "Make it self-contained: git repack -ad && rm .git/objects/info/alternates");
}

async function readText(tree: FolderTree, path: string): Promise<string | null> {
  const side = await readLower(tree, path);
  return side?.kind === "file" ? side.content.toString("utf8") : null;
}

/** Returns the commit of HEAD, or null if its branch has no commits yet. Throws `invalid` for a malformed HEAD. */
export async function headOf(repository: RepositoryFiles): Promise<string | null> {
  let value = await refText(repository.gitDir, "HEAD");
  for (let hops = 0; hops < REFS_FOLLOWED_MAX && value !== null; hops++) {
    if (HASH.test(value)) return value;
    const name = /^ref: (refs\/\S+)$/.exec(value)?.[1];
    if (name === undefined) break;
    value = (await refText(repository.common, name)) ?? (await packedRefs(repository)).get(name) ?? null;
  }
  if (value === null) return null;
  throw new CaissonError("invalid", `${repository.root} has an invalid HEAD`, { hint: "Check it with: git status" });
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

/** Throws `exists` if the branch exists or conflicts with an existing one. */
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
  const conflict = inTheWay === undefined ? "the branches below it" : `the branch ${inTheWay.slice("refs/heads/".length)}`;
  const message = inTheWay === ref ? `the branch ${name} already exists` : `the branch ${name} conflicts with ${conflict}`;
  throw new CaissonError("exists", message, { hint: "Choose another name with --name." });
}

function hasRefs(common: FolderTree, folder: string): boolean {
  return common.entries(folder).some((entry) => !entry.isDirectory() || hasRefs(common, `${folder}/${entry.name}`));
}

export interface NewFiles {
  /** The owner of new files, if root works on another user's repository. */
  owner: { uid: number; gid: number } | null;
}

/** Copies objects that git wrote into our folder to the repository. Existing objects stay. */
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
