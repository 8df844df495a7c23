/** A range of ids that belongs to a user in /etc/subuid or /etc/subgid. */
export interface SubIdRange {
  name: string;
  start: number;
  count: number;
}

/** How many ids a sandbox has inside. */
export const SANDBOX_IDS = 65_536;
/** The sandbox's user; the caller's own id when rootless, so that files come back as their owner's. */
export const SANDBOX_USER_ID = 1000;

/**
 * The first range tried for root's sandboxes where /etc/subuid gives root none: above all that useradd and systemd hand
 * out by themselves.
 */
const ROOT_RANGE_START = 1_900_019_712;

/** Ids from here on are negative numbers to some. */
const IDS_END = 2 ** 31;

export function parseSubIds(text: string): SubIdRange[] {
  return text.split("\n").flatMap((line) => {
    const [, name, start, count] = /^([^:#\s][^:]*):(\d+):(\d+)\s*$/.exec(line) ?? [];
    return name === undefined ? [] : [{ name, start: Number(start), count: Number(count) }];
  });
}

/**
 * The first range of a user, by name or number, with room for a sandbox. The sandbox's user has the caller's own id, so
 * one fewer is enough.
 */
export function subIdRangeOf(ranges: readonly SubIdRange[], user: { name: string; uid: number }, needed: number): SubIdRange | null {
  return ranges.find(({ name, count }) => (name === user.name || name === String(user.uid)) && count >= needed) ?? null;
}

/** Where root's sandboxes have their ids: root's own range when there is one, else one that overlaps nobody's. */
export function rootRangeStart(uids: readonly SubIdRange[], gids: readonly SubIdRange[]): number {
  const own = subIdRangeOf(uids, { name: "root", uid: 0 }, SANDBOX_IDS);
  const ownGroup = subIdRangeOf(gids, { name: "root", uid: 0 }, SANDBOX_IDS);
  if (own !== null && ownGroup !== null && own.start === ownGroup.start) return own.start;
  const taken = [...uids, ...gids];
  let start = ROOT_RANGE_START;
  for (let tries = 0; tries <= taken.length; tries++) {
    const clash = taken.find((range) => range.start < start + SANDBOX_IDS && start < range.start + range.count);
    if (clash === undefined) return start;
    start = clash.start + clash.count;
  }
  return start;
}

/**
 * How many ranges of a sandbox's size follow the first: in root's own, else up to where other programs expect no ids
 * any more.
 */
export function furtherRanges(first: number, uids: readonly SubIdRange[]): number {
  const own = uids.find(({ name, start, count }) => (name === "root" || name === "0") && first >= start && first < start + count);
  const end = own === undefined ? IDS_END : own.start + own.count;
  return Math.max(0, Math.floor((end - first) / SANDBOX_IDS) - 1);
}

/** Where the range begins that an id lies in, counted from the first. */
export function rangeStartOf(id: number, first: number): number {
  return id < first ? first : first + Math.floor((id - first) / SANDBOX_IDS) * SANDBOX_IDS;
}

/** One line of a map: `count` ids from `inside` on are `outside` and following on the host. */
export interface IdLine {
  inside: number;
  outside: number;
  count: number;
}

/** Inside 1000 is the caller; everything else comes from the caller's range. */
export function rootlessMap(options: { own: number; start: number }): IdLine[] {
  const { own, start } = options;
  return [
    { inside: 0, outside: start, count: SANDBOX_USER_ID },
    { inside: SANDBOX_USER_ID, outside: own, count: 1 },
    { inside: SANDBOX_USER_ID + 1, outside: start + SANDBOX_USER_ID, count: SANDBOX_IDS - SANDBOX_USER_ID - 1 },
  ];
}

/**
 * The map of an idmapped mount of a workspace: ids on disk to ids of the host as the sandbox has them. The folder's
 * owner becomes the sandbox's user. `readable` maps the host's other low ids too, so that they look right inside; it
 * must not be used where the sandbox can write to the folder itself, since root inside would then create files of the
 * host's root.
 */
export function workspaceMap(options: { owner: number; start: number; stored: number; readable: boolean }): IdLine[] {
  const { owner, start, stored, readable } = options;
  const user = { inside: owner, outside: start + SANDBOX_USER_ID, count: 1 };
  if (!readable) {
    // Whatever root inside writes belongs to the range of all sandboxes on disk, so that the next one can change it.
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
