import { readdir, rmdir, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { ABSENT, ifErrno, ignore } from "../../lib/failures.ts";
import type { IsOld, PrunedStore } from "./prune.ts";

/** An entry of the package cache, in a folder named after its first letters; see `src/network/mirror/cache.ts`. */
const ENTRY = /^[0-9a-f]{64}$/;

interface CachedPackage {
  path: string;
  bytes: number;
}

/** Creates the store of cached packages. A reader has its entry open, so an entry can be removed at any moment. */
export function createPackageStore({ stateDir }: { stateDir: string }): PrunedStore {
  const id = "mirror";
  const unused = async (isOld: IsOld): Promise<CachedPackage[]> => {
    const root = join(stateDir, id, "entries");
    const packages: CachedPackage[] = [];
    for (const shard of await ifErrno(readdir(root), ABSENT, [])) {
      for (const name of await ifErrno(readdir(join(root, shard)), ABSENT, [])) {
        const path = join(root, shard, name);
        const stats = ENTRY.test(name) ? await ifErrno(stat(path), ABSENT, null) : null;
        if (stats !== null && isOld(stats.atime.toISOString()) && isOld(stats.mtime.toISOString()))
          packages.push({ path, bytes: stats.blocks * 512 });
      }
    }
    return packages;
  };
  return {
    async find(isOld) {
      const packages = await unused(isOld);
      if (packages.length === 0) return [];
      const bytes = packages.reduce((sum, each) => sum + each.bytes, 0);
      const count = `${packages.length} ${packages.length === 1 ? "package" : "packages"}`;
      return [{ kind: "packages", id, name: null, bytes, why: `${count} can be fetched again` }];
    },
    async remove(wanted, isOld) {
      if (wanted !== id) return false;
      const packages = await unused(isOld);
      for (const { path } of packages) await ignore(unlink(path), "another process may have evicted it");
      for (const folder of new Set(packages.map(({ path }) => join(path, "..")))) await ignore(rmdir(folder), "it has other entries");
      return packages.length > 0;
    },
  };
}
