import { readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Session } from "../../contract/session/session.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { ABSENT, ifErrno } from "../../lib/failures.ts";
import { holdLease } from "../../log/hold-lease.ts";
import type { Log } from "../../log/log.ts";
import type { SessionStore } from "../sessions.ts";
import { cleanAddress } from "./address.ts";
import { MIRROR_LOCK_TTL_MS, mirrorFolder, mirrorStream } from "./git-mirror.ts";

/** A mirror, or what a clone or a removal left when its process died. */
const MIRROR_NAME = /^([0-9a-f]{24}\.git)(\.new)?$/;

export interface UnusedMirror {
  /** The name of its folder. */
  name: string;
  /** The address without a password, or null if the mirror's settings do not contain it. */
  url: string | null;
  lastFetchedMs: number;
}

export interface MirrorsOptions {
  stateDir: string;
  log: Log;
  sessions: Pick<SessionStore, "listAll">;
  holder: string;
  holderGone: (holder: string) => boolean;
}

/**
 * Returns the mirrors that no session and no ship needs. Returns an empty list while a session's record is damaged, or
 * while a session has submodules, because only the repositories contain the addresses of submodules.
 */
export async function unusedMirrors(options: MirrorsOptions): Promise<UnusedMirror[]> {
  const folder = join(options.stateDir, "mirrors");
  const names = (await ifErrno(readdir(folder), ABSENT, [])).filter((name) => MIRROR_NAME.test(name));
  if (names.length === 0) return [];
  const used = await usedMirrors(options);
  if (used === null) return [];
  const found = await Promise.all(names.filter((name) => !used.has(name)).map((name) => describe(folder, name)));
  return found.filter((mirror) => mirror !== null);
}

/** Removes a mirror. Returns false if it is missing or needed again, or if a process is fetching into it. */
export async function removeMirror(name: string, options: MirrorsOptions): Promise<boolean> {
  const [, mirror, isRemains] = MIRROR_NAME.exec(name) ?? [];
  if (mirror === undefined) return false;
  const { log, holder, holderGone } = options;
  await using lease = await holdLease(log, mirrorStream(mirror), { holder, ttlMs: MIRROR_LOCK_TTL_MS, holderGone });
  if (lease === null) return false;
  const used = await usedMirrors(options);
  if (used === null || used.has(name)) return false;
  const path = join(options.stateDir, "mirrors", mirror);
  const remains = `${path}.new`;
  if (isRemains === undefined) {
    await rm(remains, { recursive: true, force: true });
    // A crash must not leave half a mirror under its name.
    if ((await ifErrno(rename(path, remains), ABSENT, null)) === null) return false;
  }
  return (await ifErrno(rm(remains, { recursive: true }), ABSENT, null)) !== null;
}

/** Returns the folder names of the mirrors in use, or null if they cannot be known. */
async function usedMirrors({ stateDir, sessions }: MirrorsOptions): Promise<Set<string> | null> {
  const { sessions: all, damaged } = await sessions.listAll();
  if (damaged.length > 0 || all.some(({ source }) => source.kind === "git" && source.submodules)) return null;
  return new Set([...all.flatMap((session) => mirrorsOf(stateDir, session)), ...(await borrowedByShips(stateDir))]);
}

/** A session of an older version may use the mirror that all owners shared. */
function mirrorsOf(stateDir: string, { source, owner }: Session): string[] {
  if (source.kind !== "git") return [];
  return [owner, LOCAL_OWNER].map((each) => basename(mirrorFolder(stateDir, { url: source.url, owner: each })));
}

/** The repository of a ship borrows objects, even after the session was removed. */
async function borrowedByShips(stateDir: string): Promise<string[]> {
  const folder = join(stateDir, "ships");
  const texts = await Promise.all(
    (await ifErrno(readdir(folder), ABSENT, [])).map((ship) =>
      ifErrno(readFile(join(folder, ship, "repository.git", "objects", "info", "alternates"), "utf8"), ABSENT, ""),
    ),
  );
  return texts.flatMap((text) => text.match(/[0-9a-f]{24}\.git/g) ?? []);
}

async function describe(folder: string, name: string): Promise<UnusedMirror | null> {
  const path = join(folder, name);
  const found = await ifErrno(stat(path), ABSENT, null);
  if (found === null) return null;
  const fetched = await ifErrno(stat(join(path, "FETCH_HEAD")), ABSENT, null);
  const settings = await ifErrno(readFile(join(path, "config"), "utf8"), ABSENT, "");
  const address = /^\turl = (\S+)$/m.exec(settings)?.[1];
  return { name, url: address === undefined ? null : cleanAddress(address), lastFetchedMs: Math.max(found.mtimeMs, fetched?.mtimeMs ?? 0) };
}
