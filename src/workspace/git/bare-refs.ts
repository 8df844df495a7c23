import { dirname } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { type LockRecords, lockFile } from "./ref-locks.ts";
import { isRefName } from "./ref-name.ts";
import type { RefUpdate } from "./remote.ts";
import { makeFolders, type NewFiles, packedRefs, type RepositoryFiles, refText } from "./repository-files.ts";

interface LockedFiles extends NewFiles {
  locks: LockRecords;
}

const HASH = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
const DEPTH_MAX = 32;

/** Returns every ref of a repository by its full name, read from its files. Symbolic refs are left out. */
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

/** Returns the ref that HEAD points to. */
export async function headRef(repository: RepositoryFiles): Promise<string | null> {
  const name = /^ref: (.+)$/.exec((await refText(repository.gitDir, "HEAD")) ?? "")?.[1]?.trim();
  return name !== undefined && isRefName(name) ? name : null;
}

/**
 * Moves a ref as git does: the holder of its lock file decides. Throws `conflict` if the ref is not at its expected
 * commit or conflicts with other refs, `busy` while another process holds the lock.
 */
export async function moveRef(repository: RepositoryFiles, update: RefUpdate, options: LockedFiles): Promise<void> {
  const { ref, from, to } = update;
  const { common } = repository;
  makeFolders(common, dirname(ref), options);
  // Reads all refs before taking the lock: there may be very many, and the lock should be held only as long as one ref
  // takes.
  const beside = to !== null && from === null ? besides(ref, await readRefs(repository)) : undefined;
  if (beside !== undefined) throw new CaissonError("conflict", `${ref} conflicts with ${beside}`, { details: { ref } });
  await using lock = await lockFile(common, { path: `${ref}.lock`, content: `${to ?? from}\n`, ...options });
  if ((await readRef(repository, ref)) !== from) throw new CaissonError("conflict", `${ref} has moved`, { details: { ref } });
  if (to !== null) lock.becomes(ref);
  else {
    await removePacked(repository, ref, options);
    if (common.stat(ref) !== null) common.unlink(ref);
  }
  common.syncFolder(dirname(ref));
}

const besides = (ref: string, refs: ReadonlyMap<string, string>) =>
  [...refs.keys()].find((other) => other.startsWith(`${ref}/`) || ref.startsWith(`${other}/`));

/** Reads a ref from its file or from the packed refs. While its lock is held, no process moves it between the two. */
async function readRef(repository: RepositoryFiles, ref: string): Promise<string | null> {
  const text = await refText(repository.common, ref);
  if (text !== null && HASH.test(text)) return text;
  return (await packedRefs(repository)).get(ref) ?? null;
}

/** Removes a ref from the file of packed refs, with the line that names the target of a tag. */
async function removePacked(repository: RepositoryFiles, ref: string, options: LockedFiles): Promise<void> {
  if (!(await packedRefs(repository)).has(ref)) return;
  const lines = ((await refText(repository.common, "packed-refs")) ?? "").split("\n");
  const remainingLines = lines.filter(
    (line, index) => !line.endsWith(` ${ref}`) && !(line.startsWith("^") && lines[index - 1]?.endsWith(` ${ref}`)),
  );
  await using lock = await lockFile(repository.common, { path: "packed-refs.lock", content: `${remainingLines.join("\n")}\n`, ...options });
  lock.becomes("packed-refs");
}
