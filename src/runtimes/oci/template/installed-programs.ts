import { join, relative } from "node:path";
import { realPathOrNull } from "../../../lib/paths.ts";
import { isElf, isFile, isFolder } from "./file-checks.ts";
import type { Toolchain } from "./toolchain.ts";

/** Programs whose own installers put them into `~/.local/bin`: compiled ones, or links to where they are. */
const known = [
  ...["uv", "uvx", "ruff", "just", "bun", "deno", "pnpm", "zig", "esbuild"],
  ...["claude", "codex", "opencode", "gemini", "qwen", "copilot", "cursor-agent", "amp", "goose", "crush", "cline", "pi"],
];

/**
 * `~/.local/bin` also contains the user's own scripts, which may contain anything. So we take only known programs, and
 * only if they are compiled or are links to where their installers put them.
 */
export function localBin(rest: string, home: string): Toolchain | null {
  if (rest !== ".local/bin" && rest !== "bin") return null;
  const folder = join(home, rest);
  const compiled = known.map((name) => join(folder, name)).filter(isElf);
  const linked = known.flatMap((name) => linkedProgram(join(folder, name), home));
  if (compiled.length + linked.length === 0) return { name: rest, mounts: [], path: [], note: "Contains none of the supported programs." };
  return {
    name: "single programs",
    mounts: [...new Set([...compiled, ...linked.map(({ mount }) => mount)])],
    links: linked.map(({ path, target }) => ({ path, target })),
    path: [folder],
  };
}

/**
 * For a link to a version of a program, or to an npm package, returns that version or package alone: the folder above
 * may contain settings.
 */
function linkedProgram(path: string, home: string): { path: string; target: string; mount: string }[] {
  const target = realPathOrNull(path);
  if (target === null || target === path || !isFile(target)) return [];
  const part = /^\.local\/(?:share\/[^/]+\/versions\/[^/]+|lib\/node_modules\/(?:@[^/]+\/)?[^/]+)(?=\/|$)/.exec(
    relative(home, target),
  )?.[0];
  return part === undefined ? [] : [{ path, target, mount: join(home, part) }];
}

export function opencode(rest: string, home: string): Toolchain | null {
  return rest === ".opencode/bin" ? { name: "opencode", mounts: [join(home, rest)], path: [join(home, rest)] } : null;
}

/** Where users let npm put programs if they do not own the system's folder. */
export function npmPrefix(rest: string, home: string): Toolchain | null {
  if (!/^\.npm-(?:global|packages)\/bin$/.test(rest)) return null;
  return { name: "npm's global packages", ...nodePrefix(join(home, rest, "..")) };
}

/** Returns the parts of a Node prefix without `etc`, which contains npm's global settings and tokens. */
export function nodePrefix(prefix: string): Pick<Toolchain, "mounts" | "path" | "hidden"> {
  return {
    mounts: ["bin", "lib", "include"].map((part) => join(prefix, part)).filter(isFolder),
    path: [join(prefix, "bin")],
    hidden: [join(prefix, "lib/node_modules/npm/npmrc")],
  };
}
