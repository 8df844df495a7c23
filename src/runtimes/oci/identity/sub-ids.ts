/** A range of ids that /etc/subuid or /etc/subgid gives to a user. */
export interface SubIdRange {
  name: string;
  start: number;
  count: number;
}

/** The number of ids inside a sandbox. */
export const SANDBOX_IDS = 65_536;
/** The sandbox's user. Without root it is mapped to the caller's own id, so that files outside belong to the caller. */
export const SANDBOX_USER_ID = 1000;

/**
 * The first range to try for root's sandboxes if /etc/subuid gives root no range: above all ids that useradd and
 * systemd assign automatically.
 */
const ROOT_RANGE_START = 1_900_019_712;

/** Some programs read ids from here on as negative numbers. */
const IDS_END = 2 ** 31;

export function parseSubIds(text: string): SubIdRange[] {
  return text.split("\n").flatMap((line) => {
    const [, name, start, count] = /^([^:#\s][^:]*):(\d+):(\d+)\s*$/.exec(line) ?? [];
    return name === undefined ? [] : [{ name, start: Number(start), count: Number(count) }];
  });
}

/**
 * Returns the first range that belongs to a user, by name or number, and has room for a sandbox. An ordinary user needs
 * one id fewer, since the sandbox's user gets the caller's own id.
 */
export function subIdRangeOf(ranges: readonly SubIdRange[], user: { name: string; uid: number }, needed: number): SubIdRange | null {
  return ranges.find(({ name, count }) => (name === user.name || name === String(user.uid)) && count >= needed) ?? null;
}

/**
 * Returns where the ids of root's sandboxes begin: root's own range if there is one, otherwise a range that overlaps no
 * other.
 */
export function rootRangeStart(uids: readonly SubIdRange[], gids: readonly SubIdRange[]): number {
  const own = subIdRangeOf(uids, { name: "root", uid: 0 }, SANDBOX_IDS);
  const ownGroup = subIdRangeOf(gids, { name: "root", uid: 0 }, SANDBOX_IDS);
  if (own !== null && ownGroup !== null && own.start === ownGroup.start) return own.start;
  const usedRanges = [...uids, ...gids];
  let start = ROOT_RANGE_START;
  for (let tries = 0; tries <= usedRanges.length; tries++) {
    const clash = usedRanges.find((range) => range.start < start + SANDBOX_IDS && start < range.start + range.count);
    if (clash === undefined) return start;
    start = clash.start + clash.count;
  }
  return start;
}

/**
 * Returns how many ranges of a sandbox's size follow the first: within root's own range, otherwise up to ids that other
 * programs do not expect.
 */
export function furtherRanges(first: number, uids: readonly SubIdRange[]): number {
  const own = uids.find(({ name, start, count }) => (name === "root" || name === "0") && first >= start && first < start + count);
  const end = own === undefined ? IDS_END : own.start + own.count;
  return Math.max(0, Math.floor((end - first) / SANDBOX_IDS) - 1);
}

/** Returns where the range of an id begins, given the start of the first range. */
export function rangeStartOf(id: number, first: number): number {
  return id < first ? first : first + Math.floor((id - first) / SANDBOX_IDS) * SANDBOX_IDS;
}

/** A line of a map: `count` ids from `inside` on correspond to those from `outside` on the host. */
export interface IdLine {
  inside: number;
  outside: number;
  count: number;
}

/** Maps 1000 inside to the caller, and all other ids to the caller's range. */
export function rootlessMap(options: { own: number; start: number }): IdLine[] {
  const { own, start } = options;
  return [
    { inside: 0, outside: start, count: SANDBOX_USER_ID },
    { inside: SANDBOX_USER_ID, outside: own, count: 1 },
    { inside: SANDBOX_USER_ID + 1, outside: start + SANDBOX_USER_ID, count: SANDBOX_IDS - SANDBOX_USER_ID - 1 },
  ];
}

/**
 * Returns the map of a workspace's idmapped mount, from ids on disk to the host ids that the sandbox has. The folder's
 * owner becomes the sandbox's user. `readable` also maps the host's other low ids, so that they look right inside. It
 * must not be used if the sandbox can write to the folder itself, since root inside would then create files of the
 * host's root.
 */
export function workspaceMap(options: { owner: number; start: number; stored: number; readable: boolean }): IdLine[] {
  const { owner, start, stored, readable } = options;
  const user = { inside: owner, outside: start + SANDBOX_USER_ID, count: 1 };
  if (!readable) {
    // Files that root inside writes get the range that all sandboxes share on disk, so that the next sandbox can change
    // them.
    const others = [
      { inside: stored, outside: start, count: SANDBOX_USER_ID },
      { inside: stored + SANDBOX_USER_ID + 1, outside: start + SANDBOX_USER_ID + 1, count: SANDBOX_IDS - SANDBOX_USER_ID - 1 },
    ];
    return [user, ...others].filter((line) => line === user || owner < line.inside || owner >= line.inside + line.count);
  }
  if (owner === 0) return [user, { inside: 1, outside: start + 1, count: SANDBOX_USER_ID - 1 }];
  if (owner < SANDBOX_USER_ID) {
    return [
      user,
      { inside: 0, outside: start, count: owner },
      { inside: owner + 1, outside: start + owner + 1, count: SANDBOX_USER_ID - owner - 1 },
    ].filter(({ count }) => count > 0);
  }
  return [user, { inside: 0, outside: start, count: SANDBOX_USER_ID }];
}
