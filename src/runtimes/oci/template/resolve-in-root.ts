import { lstatSync, readlinkSync, type Stats } from "node:fs";
import { ifErrnoSync, UNREACHABLE } from "../../../lib/failures.ts";

const LINKS_MAX = 40;

/**
 * Resolves a path inside a tree, as for a process whose root is that tree: links, even absolute ones, never lead out of
 * it. The result contains no link and begins with `/`, or is empty for the tree itself; null if the path cannot be
 * followed. Paths are bytes as latin1 text. Only valid while the tree does not change.
 */
export function resolveInRoot(root: string, parts: readonly string[], options: { onMissing?: (path: string) => void } = {}): string | null {
  const left = [...parts].reverse();
  const done: string[] = [];
  let links = 0;
  for (let part = left.pop(); part !== undefined; part = left.pop()) {
    if (part === "" || part === ".") continue;
    if (part === "..") {
      done.pop();
      continue;
    }
    const path = `${done.length === 0 ? "" : `/${done.join("/")}`}/${part}`;
    const place = Buffer.concat([Buffer.from(root), Buffer.from(path, "latin1")]);
    const stat = statOf(place);
    if (stat === null) return null;
    if (stat?.isSymbolicLink() === true) {
      links += 1;
      if (links > LINKS_MAX) return null;
      const target = readlinkSync(place, { encoding: "latin1" });
      if (target.startsWith("/")) done.length = 0;
      left.push(...target.split("/").reverse());
      continue;
    }
    if (stat === undefined) {
      if (options.onMissing === undefined) return null;
      options.onMissing(path);
    } else if (left.length > 0 && !stat.isDirectory()) {
      return null;
    }
    done.push(part);
  }
  return done.length === 0 ? "" : `/${done.join("/")}`;
}

function statOf(place: Buffer): Stats | undefined | null {
  return ifErrnoSync(() => lstatSync(place, { throwIfNoEntry: false }), UNREACHABLE, null);
}
