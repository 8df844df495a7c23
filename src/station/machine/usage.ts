import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { DiskUsage, MachineUsage } from "../../contract/machine/machine-verbs.ts";
import { type StorageKind, storageKindNames } from "../../contract/machine/storage-kinds.ts";
import { ABSENT, ifErrno, UNREACHABLE } from "../../lib/failures.ts";
import { copyFolders, sizeOfLayer } from "./layer-usage.ts";
import { newBound, sizeOf } from "./size-of.ts";

/** Where the things of a kind are: entries of the state folder, or of one of its folders. */
interface Place {
  path: string;
  /** The number of things there. */
  count: number;
}
type FindPlaces = (stateDir: string) => Promise<Place[]>;

/** A folder with an entry for each thing. Hidden entries are unfinished, or being removed. */
const listIn =
  (name: string): FindPlaces =>
  async (stateDir) => {
    const path = join(stateDir, name);
    return [{ path, count: (await namesIn(path)).filter((each) => !each.startsWith(".")).length }];
  };

/** Entries of a folder, each of which is a thing. */
const entriesOf =
  (matches: (name: string) => boolean, folder = "."): FindPlaces =>
  async (stateDir) =>
    (await namesIn(join(stateDir, folder))).filter(matches).map((name) => ({ path: join(stateDir, folder, name), count: 1 }));

const isImage = (name: string) => name.startsWith("image-");
const isSkeleton = (name: string) => /^(host|rootless)-/.test(name);
/** Logs of processes, and what was in them before. */
export const LOG_FILE = /^(?:station|background)\.log(?:\.\d+)?$/;

const places: Readonly<Record<StorageKind, FindPlaces>> = {
  sandboxes: listIn("sandboxes"),
  sessions: listIn("sessions"),
  points: async (stateDir) => [...(await entriesOf((name) => !name.startsWith("."), "layers")(stateDir)), ...(await copiesIn(stateDir))],
  builds: listIn("builds"),
  runs: entriesOf((name) => /^log\.db(-wal|-shm)?$/.test(name)),
  snapshots: listIn("snapshots"),
  // The names of images are stored apart from their files, which are counted.
  images: async (stateDir) => [{ path: join(stateDir, "images"), count: 0 }, ...(await entriesOf(isImage, "templates")(stateDir))],
  templates: async (stateDir) =>
    (await entriesOf((name) => !isImage(name) && !isSkeleton(name), "templates")(stateDir)).map(({ path }) => ({ path, count: 0 })),
  skeletons: entriesOf(isSkeleton, "templates"),
  mirrors: listIn("mirrors"),
  packages: entriesOf((name) => name === "mirror"),
  uploads: listIn("uploads"),
  artifacts: listIn("artifacts"),
  ships: listIn("ships"),
  logs: entriesOf((name) => LOG_FILE.test(name)),
};
/** See `MachineVerbs.usage`. */
export async function usageOf(stateDir: string): Promise<MachineUsage> {
  const bound = newBound();
  const found = new Map<DiskUsage["kind"], DiskUsage>();
  const add = async (kind: DiskUsage["kind"], { path, count }: Place) => {
    const usage = found.get(kind) ?? { kind, count: 0, bytes: 0 };
    const { bytes } = await sizeOfLayer(path, bound);
    found.set(kind, { kind, count: usage.count + count, bytes: usage.bytes + bytes });
  };
  const seen = new Set<string>();
  for (const kind of storageKindNames) {
    for (const place of await places[kind](stateDir)) {
      seen.add(place.path.slice(stateDir.length + 1).split("/")[0] ?? "");
      await add(kind, place);
    }
  }
  // What is in the volume was counted in the folders over which it is mounted.
  for (const name of await namesIn(stateDir))
    if (!seen.has(name) && name !== "templates" && !/^volume(?:$|\.)/.test(name))
      await add("other", { path: join(stateDir, name), count: 1 });
  let copiedBytes = 0;
  for (const { path } of await copiesIn(stateDir)) copiedBytes += (await sizeOf(path, bound)).bytes;
  const sessions = found.get("sessions");
  if (sessions !== undefined) sessions.bytes = Math.max(0, sessions.bytes - copiedBytes);
  const kinds = [...found.values()].filter(({ bytes, count }) => bytes > 0 || count > 0).sort((a, b) => b.bytes - a.bytes);
  return { stateDir, kinds, bytes: kinds.reduce((sum, { bytes }) => sum + bytes, 0), isMinimum: bound.entries <= 0 };
}

/** The copies that earlier versions made in the folders of sessions. */
async function copiesIn(stateDir: string): Promise<Place[]> {
  const sessions = await namesIn(join(stateDir, "sessions"));
  const found = await Promise.all(sessions.map((name) => copyFolders(join(stateDir, "sessions", name))));
  return found.flatMap((points) => [...points.values()].map((path) => ({ path, count: 1 })));
}

const namesIn = (path: string): Promise<string[]> => ifErrno(readdir(path), [...ABSENT, ...UNREACHABLE], []);
