import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { FileSide } from "../../src/workspace/change.ts";
import type { Tree } from "./random-trees.ts";

export function writeTree(folder: string, tree: Tree): void {
  for (const [path, side] of tree) {
    const target = join(folder, path);
    mkdirSync(dirname(target), { recursive: true });
    if (side.kind === "link") symlinkSync(side.content, target);
    else {
      writeFileSync(target, side.content);
      chmodSync(target, side.mode);
    }
  }
}

/** Returns everything in a folder except folders, sorted by path, for comparison. */
export function readTree(folder: string): Record<string, string> {
  const found: [string, string][] = [];
  const visit = (below: string) => {
    for (const name of readdirSync(join(folder, below))) {
      const path = join(below, name);
      const stat = lstatSync(join(folder, path));
      if (stat.isDirectory()) visit(path);
      else if (stat.isSymbolicLink())
        found.push([path, describe({ kind: "link", mode: 0o777, content: readlinkSync(join(folder, path), "buffer") })]);
      else
        found.push([path, describe({ kind: "file", mode: stat.mode & 0o100 ? 0o755 : 0o644, content: readFileSync(join(folder, path)) })]);
    }
  };
  visit("");
  return Object.fromEntries(found.sort());
}

export function describeTree(tree: Tree): Record<string, string> {
  return Object.fromEntries([...tree].map(([path, side]): [string, string] => [path, describe(side)]).sort());
}

const describe = (side: FileSide) => `${side.kind} ${side.mode.toString(8)} ${side.content.toString("latin1")}`;
