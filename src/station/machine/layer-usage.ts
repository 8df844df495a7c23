import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { ABSENT, ifErrno, jsonOrNull, UNREACHABLE } from "../../lib/failures.ts";
import { type Bound, sizeOf } from "./size-of.ts";

/*
 * How the oci runtime lays out snapshots and the points of sessions. Nothing else outside the runtime depends on it,
 * and these figures are only shown.
 */

/** Earlier versions made copies beside the folders of a session's layer. */
const COPY_PREFIX = "copy-";

/** Returns the folders of the copies that earlier versions made in the folder of a session, by the points' names. */
export async function copyFolders(sessionDir: string): Promise<Map<string, string>> {
  const layer = join(sessionDir, "layer");
  const names = (await ifErrno(readdir(layer), UNREACHABLE, [])).filter((name) => name.startsWith(COPY_PREFIX));
  return new Map(names.map((name) => [name.slice(COPY_PREFIX.length), join(layer, name)]));
}

/** Returns the folder of a frozen layer. */
export const layerFolder = (stateDir: string, id: string) => join(stateDir, "layers", id);

/**
 * Returns the disk usage of a frozen layer, or of any other folder. A subvolume shares nearly all blocks with the
 * session's files, so what it changed counts.
 */
export async function sizeOfLayer(path: string, bound?: Bound): Promise<{ bytes: number; linkedBytes: number }> {
  if ((await ifErrno(stat(join(path, "tree")), UNREACHABLE, null)) === null) return sizeOf(path, bound);
  const text = await ifErrno(readFile(join(path, "layer.json"), "utf8"), UNREACHABLE, "");
  return { bytes: Number((jsonOrNull(text) as { bytes?: number } | null)?.bytes ?? 0), linkedBytes: 0 };
}

/** Returns the folder of the layer that a snapshot made; null for a layer, and for a snapshot of an earlier version. */
async function newestLayer(dir: string, stateDir: string): Promise<string | null> {
  const text = await ifErrno(readFile(join(dir, "snapshot.json"), "utf8"), ABSENT, "");
  const [newest] = (jsonOrNull(text) as { layers?: { id: string }[] } | null)?.layers ?? [];
  return newest === undefined ? null : layerFolder(stateDir, newest.id);
}

/** Returns the folders of other snapshots and layers that a snapshot or a layer builds on. */
async function foldersBelow(dir: string, stateDir: string): Promise<string[]> {
  const read = async (name: string) => jsonOrNull(await ifErrno(readFile(join(dir, name), "utf8"), ABSENT, ""));
  const snapshot = (await read("snapshot.json")) as { basis?: unknown; layers?: { id: string }[] } | null;
  const layer = (await read("layer.json")) as { parent?: string | null } | null;
  const folders = [join(stateDir, "snapshots"), join(stateDir, "sessions")];
  const below = pathsIn(snapshot?.basis ?? null).filter(
    (path) => folders.some((folder) => path.startsWith(`${folder}/`)) && !path.startsWith(`${dir}/`),
  );
  const layers = [...(snapshot?.layers ?? []).map(({ id }) => id), ...(layer?.parent ? [layer.parent] : [])];
  return [...below, ...layers.map((id) => layerFolder(stateDir, id))];
}

function pathsIn(value: unknown): string[] {
  if (typeof value === "string") return value.startsWith("/") ? [value] : [];
  if (value === null || typeof value !== "object") return [];
  return Object.values(value).flatMap(pathsIn);
}

export interface LayerUsage {
  /** What removing it would free. */
  ownBytes: number;
  /** What it also needs, and others as well. */
  sharedBytes: number;
}

/** Measures snapshots and points, in total at most as much as the bound. */
export function createLayerMeasure({ stateDir, bound }: { stateDir: string; bound: Bound }) {
  const measured = new Map<string, number>();
  let elsewhere = 0;
  const once = async (path: string): Promise<number> => {
    const known = measured.get(path);
    if (known !== undefined) return known;
    const { bytes, linkedBytes } = await sizeOfLayer(path, bound);
    measured.set(path, bytes - linkedBytes);
    return bytes - linkedBytes;
  };
  const allBelow = async (dir: string): Promise<Set<string>> => {
    const found = new Set<string>();
    for (const queue = [dir]; queue.length > 0; ) {
      const fresh = (await foldersBelow(queue.pop() ?? "", stateDir)).filter((path) => !found.has(path));
      for (const path of fresh) found.add(path);
      queue.push(...fresh);
    }
    return found;
  };
  return {
    async measure(dir: string): Promise<LayerUsage> {
      const newest = await newestLayer(dir, stateDir);
      let ownBytes = await once(dir);
      let sharedBytes = 0;
      for (const path of await allBelow(dir)) {
        if (path === newest) ownBytes += await once(path);
        else sharedBytes += await once(path);
      }
      return { ownBytes, sharedBytes };
    },
    /** Adds what a container engine measured itself. */
    addElsewhere(bytes: number): void {
      elsewhere += bytes;
    },
    /** What everything that was measured takes together, layers that several share only once. */
    total: () => elsewhere + [...measured.values()].reduce((sum, bytes) => sum + bytes, 0),
  };
}
