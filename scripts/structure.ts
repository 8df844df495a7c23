import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { relativeImportsOf } from "../test/tidy/rules.ts";

/** The import graph of one folder, with its subfolders as rooms. */
export interface Structure {
  rooms: number;
  /** The number of rooms in the longest chain of imports. */
  floors: number;
  /** Pairs of rooms where one imports the other. */
  arrows: number;
  /** Arrows against the order of floors. Every circle contains at least one. */
  upward: [from: string, to: string][];
  largest: { room: string; files: number };
}

const isProduct = (path: string) => /\.ts$/.test(path) && !/\.test\.ts$/.test(path);

/** Returns every product file below a folder. Includes test rigs (`testing-*.ts`), because their imports count, too. */
function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => isProduct(path) && statSync(path).isFile());
}

export function structureOf(folder: string): Structure {
  const files = filesBelow(folder);
  const roomOf = (path: string): string | null => {
    const inside = relative(folder, path);
    if (inside.startsWith("..")) return null;
    return inside.includes("/") ? (inside.split("/")[0] as string) : inside.replace(/\.ts$/, "");
  };
  const arrows = new Map<string, Map<string, number>>();
  const sizes = new Map<string, number>();
  for (const file of files) {
    const from = roomOf(file) as string;
    sizes.set(from, (sizes.get(from) ?? 0) + 1);
    const targets = arrows.get(from) ?? new Map<string, number>();
    arrows.set(from, targets);
    for (const target of relativeImportsOf({ path: file, text: readFileSync(file, "utf8") })) {
      const to = roomOf(target);
      if (to !== null && to !== from) targets.set(to, (targets.get(to) ?? 0) + 1);
    }
  }
  const upward = circleArrows(arrows);
  const isUpward = new Set(upward.map(([from, to]) => `${from} ${to}`));
  const [room, largest] = [...sizes].sort(([, one], [, other]) => other - one)[0] ?? ["", 0];
  return {
    rooms: sizes.size,
    floors: longestChain(arrows, (from, to) => isUpward.has(`${from} ${to}`)),
    arrows: [...arrows.values()].reduce((sum, targets) => sum + targets.size, 0),
    upward,
    largest: { room, files: largest },
  };
}

/** Returns the arrows to take out, fewest imports first, until no circle remains. */
function circleArrows(arrows: ReadonlyMap<string, ReadonlyMap<string, number>>): [string, string][] {
  const removed: [string, string][] = [];
  const isRemoved = (from: string, to: string) => removed.some(([one, other]) => one === from && other === to);
  for (;;) {
    const circle = findCircle(arrows, isRemoved);
    if (circle === null) return removed;
    const weight = ([from, to]: [string, string]) => arrows.get(from)?.get(to) ?? 0;
    removed.push(circle.toSorted((one, other) => weight(one) - weight(other))[0] as [string, string]);
  }
}

function findCircle(
  arrows: ReadonlyMap<string, ReadonlyMap<string, number>>,
  isRemoved: (from: string, to: string) => boolean,
): [string, string][] | null {
  const done = new Set<string>();
  const walk = (room: string, path: string[]): [string, string][] | null => {
    const at = path.indexOf(room);
    if (at >= 0) return [...path.slice(at), room].slice(0, -1).map((from, index, all) => [from, all[index + 1] ?? room]);
    if (done.has(room)) return null;
    for (const to of arrows.get(room)?.keys() ?? []) {
      const found = isRemoved(room, to) ? null : walk(to, [...path, room]);
      if (found !== null) return found;
    }
    done.add(room);
    return null;
  };
  for (const room of arrows.keys()) {
    const found = walk(room, []);
    if (found !== null) return found;
  }
  return null;
}

function longestChain(arrows: ReadonlyMap<string, ReadonlyMap<string, number>>, isUpward: (from: string, to: string) => boolean): number {
  const known = new Map<string, number>();
  const floorOf = (room: string): number => {
    const floor = known.get(room);
    if (floor !== undefined) return floor;
    const below = [...(arrows.get(room)?.keys() ?? [])].filter((to) => !isUpward(room, to)).map(floorOf);
    known.set(room, 1 + Math.max(0, ...below));
    return known.get(room) as number;
  };
  return Math.max(0, ...[...arrows.keys()].map(floorOf));
}

if (process.argv[1] === import.meta.filename) {
  const folders = process.argv.length > 2 ? process.argv.slice(2) : ["src", "src/station", "src/contract"];
  for (const folder of folders) {
    const { rooms, floors, arrows, upward, largest } = structureOf(folder);
    console.log(
      `${folder}: ${rooms} rooms, ${floors} floors, ${arrows} arrows, ${upward.length} upward, largest ${largest.room} (${largest.files} files)`,
    );
    for (const [from, to] of upward) console.log(`  upward: ${from} → ${to}`);
  }
}
