import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { CaissonError } from "../../../contract/error.ts";
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

/** Who sandboxes are on this machine: the maps of their user namespaces, and the ids on disk that follow from them. */
export interface Identity {
  rootless: boolean;
  uids: IdLine[];
  gids: IdLine[];
  /** The host's ids of root inside and of the sandbox's user. */
  root: { uid: number; gid: number };
  user: { uid: number; gid: number };
  /**
   * Where the range begins that templates have on disk, and shared folders get; a sandbox's own is another where there
   * are more.
   */
  stored: { uid: number; gid: number };
  /** How many ranges follow that one. */
  furtherRanges: number;
  /** The records that every plan begins with. */
  plan: PlanRecord[];
}

/** Throws `unavailable` when this user cannot have user namespaces with more than one id; the hint is the fix. */
export function findIdentity(options: { stateDir: string; path: string }): Identity {
  const uid = process.getuid?.() ?? 0;
  if (uid === 0) return rootIdentity(options.stateDir);
  const identity = rootlessIdentity(options.path);
  refuseForeignGroup(options.stateDir, identity);
  return identity;
}

/**
 * Not even root inside may enter a folder of a group that the sandbox has no id for. What is made in the state folder
 * has the user's own group, unless the folder hands on another by its set-group-id bit. Throws `unavailable`.
 */
export function refuseForeignGroup(stateDir: string, { gids }: Pick<Identity, "gids">): void {
  const status = statSync(stateDir, { throwIfNoEntry: false });
  if (status === undefined || (status.mode & 0o2000) === 0) return;
  if (gids.some(({ outside, count }) => status.gid >= outside && status.gid < outside + count)) return;
  throw new CaissonError(
    "unavailable",
    `files in the state folder ${stateDir} get the group ${status.gid}, which is not known in your sandboxes`,
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

/** The identity of a sandbox of root's with a range of its own. */
export function withRange(identity: Identity, start: number): Identity {
  return identity.rootless || start === identity.root.uid ? identity : { ...identity, ...rangeOfRoot(start) };
}

function rangeOfRoot(start: number): Omit<Identity, "stored" | "furtherRanges"> {
  const line = { inside: 0, outside: start, count: SANDBOX_IDS };
  const identity = { rootless: false, uids: [line], gids: [line], root: { uid: start, gid: start } };
  const user = { uid: start + SANDBOX_USER_ID, gid: start + SANDBOX_USER_ID };
  return { ...identity, user, plan: [["mode", "root"], ...mapRecords("sandbox", [line], [line]), ...namespaceLimits()] };
}

/** Chosen once and kept: files of sandboxes and snapshots on disk belong to it. */
function rootStart(stateDir: string): number {
  const folder = join(stateDir, "oci");
  const file = join(folder, "first-id");
  const kept = Number(readOrEmpty(file).trim());
  if (Number.isInteger(kept) && kept > 0) return kept;
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
    throw new CaissonError("unavailable", "newuidmap and newgidmap are not installed, so a user cannot have sandboxes with their own ids", {
      hint: "Install them: `apt install uidmap` (Debian, Ubuntu), `dnf install shadow-utils` (Fedora), `apk add shadow-uidmap` (Alpine).",
    });
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
    hint: `Run as root: \`usermod --add-subuids 100000-165535 --add-subgids 100000-165535 ${user.name}\` (or the next range that is free).`,
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
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
