import { headRef, moveRef, readRefs } from "./bare-refs.ts";
import type { GitOptions } from "./host-git.ts";
import { knownOf, packOf } from "./packs.ts";
import { makePrivateRepository } from "./private-repository.ts";
import { type LockRecords, removeDeadLocks } from "./ref-locks.ts";
import type { GitRemote } from "./remote.ts";
import { addObjects, openBareRepository, type RepositoryFiles } from "./repository-files.ts";

export interface BareRemoteOptions {
  path: string;
  hash: RepositoryFiles["hash"];
  git: Pick<GitOptions, "path">;
  locks: LockRecords;
}

/**
 * Creates a remote for a user's bare repository on this machine. Its refs and objects are read and written as files:
 * its settings and hooks may name programs, and we start no git that would run them.
 */
export function createBareRemote(options: BareRemoteOptions): GitRemote {
  const { locks } = options;
  const open = () => openBareRepository(options.path, options);
  return {
    async refs() {
      await removeDeadLocks(locks);
      using repository = open();
      return { refs: await readRefs(repository), head: await headRef(repository), capabilities: new Set() };
    },
    async push(updates, pack) {
      using repository = open();
      const { uid, gid } = repository.common.identity;
      const owner = process.getuid?.() === 0 ? { uid, gid } : null;
      if (pack !== null) {
        await using own = await makePrivateRepository(repository, options.git);
        await own.git(["unpack-objects", "-q"], { input: pack });
        await addObjects(repository, own.objects, { owner });
      }
      for (const update of updates) await moveRef(repository, update, { owner, locks });
      return { said: "" };
    },
    async fetch({ wants, haves }) {
      using repository = open();
      await using own = await makePrivateRepository(repository, options.git);
      return await packOf(own, { wants, haves: await knownOf(own, haves) });
    },
  };
}
