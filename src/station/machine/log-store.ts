import { readdir, stat, truncate, unlink } from "node:fs/promises";
import { join } from "node:path";
import { ABSENT, ifErrno } from "../../lib/failures.ts";
import type { PrunedStore } from "./prune.ts";
import { LOG_FILE } from "./usage.ts";

/**
 * Creates the store of log files to which nothing was written for long. Processes may have one open to append to it, so
 * only former ones are removed; a current one is emptied.
 */
export function createLogStore({ stateDir }: { stateDir: string }): PrunedStore {
  // The station's own log has a bounded size.
  const isPruned = (name: string) => LOG_FILE.test(name) && name !== "station.log";
  const isFormer = (name: string) => /\.\d+$/.test(name);
  return {
    async find(isOld) {
      const names = (await ifErrno(readdir(stateDir), ABSENT, [])).filter(isPruned);
      const files = await Promise.all(
        names.map(async (name) => ({ name, stats: await ifErrno(stat(join(stateDir, name)), ABSENT, null) })),
      );
      return files.flatMap(({ name, stats }) => {
        if (stats === null || (stats.size === 0 && !isFormer(name)) || !isOld(stats.mtime.toISOString())) return [];
        return [{ kind: "log", id: name, name: null, bytes: stats.blocks * 512, why: "nothing was written to it lately" }];
      });
    },
    async remove(name, isOld) {
      if (!isPruned(name)) return false;
      const path = join(stateDir, name);
      const stats = await ifErrno(stat(path), ABSENT, null);
      if (stats === null || !isOld(stats.mtime.toISOString())) return false;
      await (isFormer(name) ? unlink(path) : truncate(path));
      return true;
    },
  };
}
