import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { ABSENT, ifErrno, jsonOrNull, UNREACHABLE } from "../../lib/failures.ts";
import { type Bound, sizeOf } from "./size-of.ts";

/*
 * How the oci runtime lays out snapshots and the earlier states of sessions. Nothing else outside the runtime depends
 * on it, and these figures are only shown.
 */

/** Earlier states of a session are beside the folders of its layer. */
const POINT_PREFIX = "copy-";

/** Returns the folders of the earlier states in the folder of a session, by name. */
export async function pointFolders(sessionDir: string): Promise<Map<string, string>> {
  const layer = join(sessionDir, "layer");
  const names = (await ifErrno(readdir(layer), UNREACHABLE, [])).filter((name) => name.startsWith(POINT_PREFIX));
  return new Map(names.map((name) => [name.slice(POINT_PREFIX.length), join(layer, name)]));
}

/** Returns the folders of other snapshots and sessions that a snapshot builds on. */
async function layersBelow(dir: string, stateDir: string): Promise<string[]> {
  const record = jsonOrNull(await ifErrno(readFile(join(dir, "snapshot.json"), "utf8"), ABSENT, "")) as { basis?: unknown } | null;
  const folders = [join(stateDir, "snapshots"), join(stateDir, "sessions")];
  return pathsIn(record?.basis ?? null).filter(
    (path) => folders.some((folder) => path.startsWith(`${folder}/`)) && !path.startsWith(`${dir}/`),
  );
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

/** Measures snapshots and earlier states, in total at most as much as the bound. */
export function createLayerMeasure({ stateDir, bound }: { stateDir: string; bound: Bound }) {
  const shared = new Map<string, number>();
  let ownBytes = 0;
  const measured = async (path: string): Promise<number> => {
    const known = shared.get(path);
    if (known !== undefined) return known;
    const { bytes } = await sizeOf(path, bound);
    shared.set(path, bytes);
    return bytes;
  };
  return {
    async measure(dir: string): Promise<LayerUsage> {
      const { bytes, linkedBytes } = await sizeOf(dir, bound);
      let sharedBytes = linkedBytes;
      for (const path of await layersBelow(dir, stateDir)) sharedBytes += await measured(path);
      ownBytes += bytes - linkedBytes;
      return { ownBytes: bytes - linkedBytes, sharedBytes };
    },
    /** Adds what a container engine measured itself. */
    addElsewhere(bytes: number): void {
      ownBytes += bytes;
    },
    /** What everything that was measured takes together, layers that several share only once. */
    total: () => ownBytes + [...shared.values()].reduce((sum, bytes) => sum + bytes, 0),
  };
}
