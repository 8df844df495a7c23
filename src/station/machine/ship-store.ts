import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { ABSENT, ifErrno } from "../../lib/failures.ts";
import type { Log } from "../../log/log.ts";
import type { PrunedStore } from "./prune.ts";
import { sizeOf } from "./size-of.ts";

const GONE_PREFIX = ".gone-";

/** Creates the store of the repositories that removed ships left. */
export function createShipStore({ stateDir, log }: { stateDir: string; log: Log }): PrunedStore {
  const folder = join(stateDir, "ships");
  const isLeft = async (ship: string) => (await log.lastSeq(`ship/${ship}`)) === 0;
  return {
    async find() {
      const names = await ifErrno(readdir(folder), ABSENT, []);
      const things = [];
      for (const name of names) {
        const ship = name.startsWith(GONE_PREFIX) ? name.slice(GONE_PREFIX.length) : name;
        if (!name.startsWith(GONE_PREFIX) && !(await isLeft(ship))) continue;
        const { bytes } = await sizeOf(join(folder, name));
        things.push({ kind: "ship" as const, id: `ships/${name}`, name: null, bytes, why: `${ship} was removed` });
      }
      return things;
    },
    async remove(id) {
      const name = id.slice("ships/".length);
      if (name.includes("/")) return false;
      const isUnfinished = name.startsWith(GONE_PREFIX);
      if (!isUnfinished && !(await isLeft(name))) return false;
      // A crash must not leave half a repository under its name.
      const trash = isUnfinished ? name : `${GONE_PREFIX}${name}`;
      if (!isUnfinished && (await ifErrno(rename(join(folder, name), join(folder, trash)), ABSENT, null)) === null) return false;
      await rm(join(folder, trash), { recursive: true, force: true });
      return true;
    },
  };
}
