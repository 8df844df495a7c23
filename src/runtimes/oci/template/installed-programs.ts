import { realpathSync } from "node:fs";
import { join, relative } from "node:path";
import { isElf, isFile, isFolder } from "./file-checks.ts";
import type { Toolchain } from "./toolchain.ts";

/** Programs that their own installers put into `~/.local/bin`: compiled ones there, or links to where they are. */
const known = [
  ...["uv", "uvx", "ruff", "just", "bun", "deno", "pnpm", "zig", "esbuild"],
  ...["claude", "codex", "opencode", "gemini", "qwen", "copilot", "cursor-agent", "amp", "goose", "crush", "cline", "pi"],
];

/**
 * `~/.local/bin` collects scripts of the user's own, with whatever they hold: only known programs, and only as compiled
 * ones or where their installers put them.
 */
export function localBin(rest: string, home: string): Toolchain | null {
  if (rest !== ".local/bin" && rest !== "bin") return null;
  const folder = join(home, rest);
  const compiled = known.map((name) => join(folder, name)).filter(isElf);
  const linked = known.flatMap((name) => linkedProgram(join(folder, name), home));
  if (compiled.length + linked.length === 0)
    return { name: rest, mounts: [], path: [], note: "Holds none of the programs that are taken from there." };
  return {
    name: "single programs",
    mounts: [...new Set([...compiled, ...linked.map(({ mount }) => mount)])],
    links: linked.map(({ path, target }) => ({ path, target })),
    path: [folder],
  };
}

/**
 * Of a link to a version of a program, or to a package of npm's, that version or package alone: its folder may hold
 * settings.
 */
function linkedProgram(path: string, home: string): { path: string; target: string; mount: string }[] {
  const target = realOrNull(path);
  if (target === null || target === path || !isFile(target)) return [];
  const part = /^\.local\/(?:share\/[^/]+\/versions\/[^/]+|lib\/node_modules\/(?:@[^/]+\/)?[^/]+)(?=\/|$)/.exec(
    relative(home, target),
  )?.[0];
  return part === undefined ? [] : [{ path, target, mount: join(home, part) }];
}

export function opencode(rest: string, home: string): Toolchain | null {
  return rest === ".opencode/bin" ? { name: "opencode", mounts: [join(home, rest)], path: [join(home, rest)] } : null;
}

/** Where users have npm put programs when the system's folder is not theirs. */
export function npmPrefix(rest: string, home: string): Toolchain | null {
  if (!/^\.npm-(?:global|packages)\/bin$/.test(rest)) return null;
  return { name: "npm's global packages", ...nodePrefix(join(home, rest, "..")) };
}

/** Of a Node prefix, not `etc`, where npm's global settings and tokens lie. */
export function nodePrefix(prefix: string): Pick<Toolchain, "mounts" | "path" | "hidden"> {
  return {
    mounts: ["bin", "lib", "include"].map((part) => join(prefix, part)).filter(isFolder),
    path: [join(prefix, "bin")],
    hidden: [join(prefix, "lib/node_modules/npm/npmrc")],
  };
}

function realOrNull(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}
