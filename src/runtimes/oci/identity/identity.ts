import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import { ifErrnoSync, UNREACHABLE } from "../../../lib/failures.ts";
import { findProgram } from "../discover.ts";
import type { PlanRecord } from "../launch/launcher.ts";
import { namespaceLimits } from "./namespace-limits.ts";
import {
  furtherRanges,
  type IdLine,
  parseSubIds,
  rootlessMap,
  rootRangeStart,
  SANDBOX_IDS,
  SANDBOX_USER_ID,
  type SubIdRange,
  subIdRangeOf,
} from "./sub-ids.ts";

/** The ids of sandboxes on this machine: the maps of their user namespaces, and the resulting ids on disk. */
export interface Identity {
  rootless: boolean;
  uids: IdLine[];
  gids: IdLine[];
  /** The host ids of root inside and of the sandbox's user. */
  root: { uid: number; gid: number };
  user: { uid: number; gid: number };
  /**
   * The start of the range that templates have on disk and that shared folders get. If there are further ranges, each
   * sandbox has a separate one.
   */
  stored: { uid: number; gid: number };
  /** The number of ranges after that one. */
  furtherRanges: number;
  /** The records that every plan begins with. */
  plan: PlanRecord[];
}

/**
 * Determines the ids of sandboxes. Throws `unavailable`, with the fix as its hint, if this user cannot have user
 * namespaces with more than one id.
 */
export function findIdentity(options: { stateDir: string; path: string }): Identity {
  const uid = process.getuid?.() ?? 0;
  if (uid === 0) return rootIdentity(options.stateDir);
  const identity = rootlessIdentity(options.path);
  refuseForeignGroup(options.stateDir, identity);
  return identity;
}

/**
 * Throws `unavailable` if files in the state folder get a group that has no id in the sandbox: not even root inside
 * could enter its folders. Files there get the user's own group, unless the folder's set-group-id bit passes on the
 * folder's group.
 */
export function refuseForeignGroup(stateDir: string, { gids }: Pick<Identity, "gids">): void {
  const status = statSync(stateDir, { throwIfNoEntry: false });
  if (status === undefined || (status.mode & 0o2000) === 0) return;
  if (gids.some(({ outside, count }) => status.gid >= outside && status.gid < outside + count)) return;
  throw new CaissonError(
    "unavailable",
    `files in the state folder ${stateDir} get the group ${status.gid}, which does not exist in your sandboxes`,
    {
      hint: `Give it your own group: \`chgrp -R "$(id -g)" ${stateDir} && chmod -R g-s ${stateDir}\`.`,
    },
  );
}

function rootIdentity(stateDir: string): Identity {
  const start = rootStart(stateDir);
  const ranges = { stored: { uid: start, gid: start }, furtherRanges: furtherRanges(start, readSubIds("/etc/subuid")) };
  return { ...ranges, ...rangeOfRoot(start) };
}

/** Returns the identity of a root sandbox with its own range. */
export function withRange(identity: Identity, start: number): Identity {
  return identity.rootless || start === identity.root.uid ? identity : { ...identity, ...rangeOfRoot(start) };
}

function rangeOfRoot(start: number): Omit<Identity, "stored" | "furtherRanges"> {
  const line = { inside: 0, outside: start, count: SANDBOX_IDS };
  const identity = { rootless: false, uids: [line], gids: [line], root: { uid: start, gid: start } };
  const user = { uid: start + SANDBOX_USER_ID, gid: start + SANDBOX_USER_ID };
  return { ...identity, user, plan: [["mode", "root"], ...mapRecords("sandbox", [line], [line]), ...namespaceLimits()] };
}

/**
 * Returns where root's first range begins. Chosen once and stored, since files of sandboxes and snapshots on disk
 * belong to it.
 */
function rootStart(stateDir: string): number {
  const folder = join(stateDir, "oci");
  const file = join(folder, "first-id");
  const storedStart = Number(readOrEmpty(file).trim());
  if (Number.isInteger(storedStart) && storedStart > 0) return storedStart;
  const start = rootRangeStart(readSubIds("/etc/subuid"), readSubIds("/etc/subgid"));
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, `${start}\n`);
  renameSync(draft, file);
  return start;
}

function rootlessIdentity(path: string): Identity {
  const { username: name, uid, gid } = userInfo();
  const newuidmap = findProgram("newuidmap", path);
  const newgidmap = findProgram("newgidmap", path);
  if (newuidmap === null || newgidmap === null) {
    throw new CaissonError(
      "unavailable",
      "newuidmap and newgidmap are not installed, so an ordinary user's sandboxes cannot have their own ids",
      {
        hint: "Install them: `apt install uidmap` (Debian, Ubuntu), `dnf install shadow-utils` (Fedora), `apk add shadow-uidmap` (Alpine).",
      },
    );
  }
  const uids = ownRange("/etc/subuid", { name, uid });
  const gids = ownRange("/etc/subgid", { name, uid });
  const uidLines = rootlessMap({ own: uid, start: uids.start });
  const gidLines = rootlessMap({ own: gid, start: gids.start });
  return {
    rootless: true,
    uids: uidLines,
    gids: gidLines,
    root: { uid: uids.start, gid: gids.start },
    stored: { uid: uids.start, gid: gids.start },
    furtherRanges: 0,
    user: { uid, gid },
    plan: [
      ["mode", "rootless"],
      ["newuidmap", newuidmap],
      ["newgidmap", newgidmap],
      ...mapRecords("sandbox", uidLines, gidLines),
      ...namespaceLimits(),
    ],
  };
}

function ownRange(file: string, user: { name: string; uid: number }): SubIdRange {
  const range = subIdRangeOf(readSubIds(file), user, SANDBOX_IDS - 1);
  if (range !== null) return range;
  throw new CaissonError("unavailable", `${file} gives ${user.name} no range of 65,536 ids`, {
    hint: `Run as root: \`usermod --add-subuids 100000-165535 --add-subgids 100000-165535 ${user.name}\` (or use the next free range).`,
  });
}

export function mapRecords(name: string, uids: readonly IdLine[], gids: readonly IdLine[]): PlanRecord[] {
  const records = (verb: string, lines: readonly IdLine[]) =>
    lines.map(({ inside, outside, count }): PlanRecord => [verb, name, inside, outside, count]);
  return [...records("map-uid", uids), ...records("map-gid", gids)];
}

function readSubIds(file: string): SubIdRange[] {
  return parseSubIds(readOrEmpty(file));
}

function readOrEmpty(file: string): string {
  return ifErrnoSync(() => readFileSync(file, "utf8"), UNREACHABLE, "");
}
