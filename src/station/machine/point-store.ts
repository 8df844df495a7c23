import { join } from "node:path";
import type { Session } from "../../contract/session/session.ts";
import type { Log } from "../../log/log.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { ifUnusable, type SessionStore } from "../../workspace/sessions.ts";
import { forgetPoints } from "../sessions/stored-points.ts";
import { runStream } from "../vocabulary/station-names.ts";
import { copyFolders, layerFolder, sizeOfLayer } from "./layer-usage.ts";
import type { PrunedStore } from "./prune.ts";

interface PointStoreOptions {
  stateDir: string;
  log: Log;
  sessions: SessionStore;
  runtime: (name: string | undefined) => Promise<Runtime>;
}

/** Creates the store of the earlier states of sessions. Those of a session go together; its files stay. */
export function createPointStore({ stateDir, log, sessions, runtime }: PointStoreOptions): PrunedStore {
  const isIdle = async ({ id }: Session) => {
    const lock = await sessions.lockOf(id);
    if (lock !== null && !lock.stale) return false;
    return (await log.heads({ prefix: runStream(""), where: { session: [id] }, open: true, limit: 1 })).heads.length === 0;
  };
  return {
    async find(isOld) {
      const things = [];
      for (const session of await sessions.list()) {
        const copies = await copyFolders(sessions.paths(session).dir);
        const points = await sessions.points(session.id);
        const ids = points.flatMap(({ files }) => (files.kind === "point" && files.id !== null ? [files.id] : []));
        const folders = [...copies.values(), ...[...new Set(ids)].map((id) => layerFolder(stateDir, id))];
        // In a container engine, which measured them.
        const images = points.filter(({ files, step }) => files.kind === "snapshot" && files.id !== null && step !== undefined);
        const count = folders.length + new Set(images.map(({ files }) => files.kind === "snapshot" && files.id)).size;
        if (count === 0 || !isOld(session.lastUsedAt) || !(await isIdle(session))) continue;
        let bytes = images.reduce((sum, image) => sum + (image.bytes ?? 0), 0);
        for (const folder of folders) bytes += (await sizeOfLayer(folder)).bytes;
        const why = `undo needs ${count === 1 ? "this earlier state" : `these ${count} earlier states`} of its files`;
        things.push({ kind: "points" as const, id: join("points", session.id), name: session.name ?? null, bytes, why });
      }
      return things;
    },
    async remove(id, isOld) {
      const session = await sessions.get(id.slice("points/".length)).catch(ifUnusable);
      if (session === null || session.runtime === null || !isOld(session.lastUsedAt) || !(await isIdle(session))) return false;
      await using _ = await sessions.edit(session.id);
      await forgetPoints(session, { sessions, runtime: await runtime(session.runtime) });
      return true;
    },
  };
}
