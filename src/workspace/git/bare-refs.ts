import { dirname } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { isErrno } from "../../lib/is-errno.ts";
import { isRefName } from "./ref-name.ts";
import type { RefUpdate } from "./remote.ts";
import { makeFolders, type NewFiles, packedRefs, type RepositoryFiles, refText, writeNew } from "./repository-files.ts";

const HASH = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
const DEPTH_MAX = 32;

/** Every ref of a repository by its full name, read as the files they are. Symbolic ones are left out. */
export async function readRefs(repository: RepositoryFiles): Promise<Map<string, string>> {
  const refs = new Map([...(await packedRefs(repository))].filter(([name]) => isRefName(name)));
  const walk = async (folder: string, depth: number): Promise<void> => {
    if (depth > DEPTH_MAX) return;
    for (const entry of repository.common.entries(folder)) {
      const name = `${folder}/${entry.name}`;
      if (entry.isDirectory()) await walk(name, depth + 1);
      else if (isRefName(name)) {
        const text = await refText(repository.common, name);
        if (text !== null && HASH.test(text)) refs.set(name, text);
      }
    }
  };
  await walk("refs", 0);
  return refs;
}

/** The ref that HEAD stands for. */
export async function headRef(repository: RepositoryFiles): Promise<string | null> {
  const name = /^ref: (.+)$/.exec((await refText(repository.gitDir, "HEAD")) ?? "")?.[1]?.trim();
  return name !== undefined && isRefName(name) ? name : null;
}

/**
 * Moves a ref as git does it: whoever has its lock file decides. Throws `conflict` for one that is not where it is said
 * to be, or that cannot stand beside others, `busy` while another has the lock.
 */
export async function moveRef(repository: RepositoryFiles, update: RefUpdate, options: NewFiles): Promise<void> {
  const { ref, from, to } = update;
  const { common } = repository;
  makeFolders(common, dirname(ref), options);
  await using lock = await lockFile(repository, { path: `${ref}.lock`, content: `${to ?? from}\n`, options });
  const refs = await readRefs(repository);
  const isAt = refs.get(ref) ?? null;
  if (isAt !== from) throw new CaissonError("conflict", `${ref} is not where it was`, { details: { ref } });
  const beside = [...refs.keys()].find((other) => other.startsWith(`${ref}/`) || ref.startsWith(`${other}/`));
  if (to !== null && from === null && beside !== undefined)
    throw new CaissonError("conflict", `${ref} cannot stand beside ${beside}`, { details: { ref } });
  if (to !== null) lock.becomes(ref);
  else {
    await removePacked(repository, ref, options);
    if (common.stat(ref) !== null) common.unlink(ref);
  }
  common.syncFolder(dirname(ref));
}

interface LockFile extends AsyncDisposable {
  /** Takes the place of this file, whole. */
  becomes(path: string): void;
}

async function lockFile(
  { common }: RepositoryFiles,
  { path, content, options }: { path: string; content: string; options: NewFiles },
): Promise<LockFile> {
  try {
    await writeNew(common, path, { ...options, content: Buffer.from(content), mode: 0o644 });
  } catch (error) {
    if (!isErrno(error, "EEXIST")) throw error;
    throw new CaissonError("busy", `somebody else holds ${path}`, { hint: `If nobody does, remove it.` });
  }
  let isThere = true;
  return {
    becomes(target) {
      common.rename(path, target);
      isThere = false;
    },
    async [Symbol.asyncDispose]() {
      if (isThere) common.unlink(path);
    },
  };
}

/** From the file of all refs together, with the line of what a tag leads to. */
async function removePacked(repository: RepositoryFiles, ref: string, options: NewFiles): Promise<void> {
  if (!(await packedRefs(repository)).has(ref)) return;
  const lines = ((await refText(repository.common, "packed-refs")) ?? "").split("\n");
  const kept = lines.filter((line, index) => !line.endsWith(` ${ref}`) && !(line.startsWith("^") && lines[index - 1]?.endsWith(` ${ref}`)));
  await using lock = await lockFile(repository, { path: "packed-refs.lock", content: `${kept.join("\n")}\n`, options });
  lock.becomes("packed-refs");
}
