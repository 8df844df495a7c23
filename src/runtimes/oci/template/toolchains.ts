import { readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { ifErrnoSync, UNREACHABLE } from "../../../lib/failures.ts";
import { realPathOrNull } from "../../../lib/paths.ts";
import { isFile, isFolder, readSmall } from "./file-checks.ts";
import { localBin, nodePrefix, npmPrefix, opencode } from "./installed-programs.ts";
import type { Layout, Toolchain } from "./toolchain.ts";

/** Further versions or tools in one toolchain folder are left out. */
const TOOLS_MAX = 32;

/**
 * Returns the toolchain that a folder on PATH belongs to, or null if its layout is not known. Neither path may contain
 * links. Of a known layout, only the folders with programs are visible, never the folder above, where such tools keep
 * tokens.
 */
export function toolchainAt(folder: string, home: string): Toolchain | null {
  const rest = relative(home, folder);
  if (rest === "" || rest.startsWith("..") || rest.startsWith("/")) return null;
  for (const layout of layouts) {
    const found = layout(rest, home);
    if (found !== null) return found;
  }
  return null;
}

const layouts: readonly Layout[] = [cargo, shimToolchain, node, volta, mise, asdf, go, sdkman, bun, deno, opencode, npmPrefix, localBin];

function cargo(rest: string, home: string): Toolchain | null {
  if (rest !== ".cargo/bin") return null;
  const rustup = join(home, ".rustup");
  const found: Toolchain = { name: "cargo", mounts: [join(home, rest)], path: [join(home, rest)] };
  if (!isFolder(join(rustup, "toolchains"))) return found;
  // The user's own settings list the user's folders, so only the default toolchain is carried over.
  const chosen = /^default_toolchain\s*=\s*"([\w.+-]+)"/m.exec(readSmall(join(rustup, "settings.toml")))?.[1];
  const settings = [
    'version = "12"',
    ...(chosen === undefined ? [] : [`default_toolchain = "${chosen}"`]),
    'profile = "minimal"',
    "",
    "[overrides]",
    "",
  ];
  return {
    ...found,
    name: "rustup and cargo",
    mounts: [...found.mounts, join(rustup, "toolchains")],
    env: { RUSTUP_HOME: rustup },
    folders: ["downloads", "tmp", "update-hashes"].map((name) => join(rustup, name)),
    files: [{ path: join(rustup, "settings.toml"), content: settings.join("\n") }],
  };
}

/**
 * pyenv and similar tools. Their shims are scripts that look up the version to use, so they need the tool and every
 * version.
 */
function shimToolchain(rest: string, home: string): Toolchain | null {
  const name = /^\.(pyenv|rbenv|nodenv)\/(?:shims|bin)$/.exec(rest)?.[1];
  if (name === undefined) return null;
  const base = join(home, `.${name}`);
  const versions = join(base, "versions");
  const mounts = ["bin", "libexec", "shims", "versions", `${name}.d`].map((part) => join(base, part)).filter(isFolder);
  const chosen = readSmall(join(base, "version"));
  return {
    name,
    mounts,
    path: [join(home, rest)],
    // pip reads settings from its installation, and an index there may include a password.
    hidden: children(versions).flatMap((version) => [
      join(version, "pip.conf"),
      join(version, "etc"),
      ...children(join(version, "envs")).map((env) => join(env, "pip.conf")),
    ]),
    env: { [`${name.toUpperCase()}_ROOT`]: base },
    files: /^[\w.\-/ \n]+$/.test(chosen) ? [{ path: join(base, "version"), content: chosen }] : [],
  };
}

/** nvm and fnm, which have a Node prefix for each version. */
function node(rest: string, home: string): Toolchain | null {
  const nvm = /^(?:\.nvm|\.config\/nvm)\/versions\/(?:node|io\.js)\/[^/]+\/bin$/.test(rest);
  const fnm = /^(?:\.local\/share\/fnm|\.fnm)\/node-versions\/[^/]+\/installation\/bin$/.test(rest);
  if (!nvm && !fnm) return null;
  return { name: nvm ? "nvm" : "fnm", ...nodePrefix(join(home, rest, "..")) };
}

/** Volta's shims need to write to its folder, so the default Node is put on PATH instead. */
function volta(rest: string, home: string): Toolchain | null {
  if (rest !== ".volta/bin") return null;
  const base = join(home, ".volta");
  const platform = readSmall(join(base, "tools/user/platform.json"));
  const version = /"runtime"\s*:\s*"(\d[\w.+-]*)"/.exec(platform)?.[1];
  const prefix = version === undefined ? undefined : join(base, "tools/image/node", version);
  if (prefix === undefined || !isFolder(prefix)) {
    return { name: "volta", mounts: [], path: [], note: "Volta has no default Node, so nothing of it is visible." };
  }
  return { name: "volta", ...nodePrefix(prefix) };
}

/**
 * mise's shims read the user's configuration, which may set secret variables, so the installed tools themselves are put
 * on PATH instead.
 */
function mise(rest: string, home: string): Toolchain | null {
  const base = /^(\.local\/share\/(?:mise|rtx))\/(?:shims$|installs\/)/.exec(rest)?.[1];
  if (base === undefined) return null;
  const installs = join(home, base, "installs");
  const direct = /\/installs\/([^/]+)\/([^/]+)(?:\/|$)/.exec(rest);
  if (direct?.[1] !== undefined && direct[2] !== undefined) {
    return merge("mise", [installedToolchain(direct[1], join(installs, direct[1], direct[2]))], [join(home, rest)]);
  }
  const found = children(installs).flatMap((tool) => {
    const chosen = resolveWithin(join(tool, "latest"), installs) ?? newest(tool);
    return chosen === undefined ? [] : [installedToolchain(tool.slice(installs.length + 1), chosen)];
  });
  return merge("mise", found);
}

/** asdf's shims need its plugins and the user's `~/.tool-versions`, so the versions named there go on PATH directly. */
function asdf(rest: string, home: string): Toolchain | null {
  const direct = /^\.asdf\/installs\/([^/]+)\/([^/]+)(?:\/|$)/.exec(rest);
  const installs = join(home, ".asdf/installs");
  if (direct?.[1] !== undefined && direct[2] !== undefined) {
    return merge("asdf", [installedToolchain(direct[1], join(installs, direct[1], direct[2]))], [join(home, rest)]);
  }
  if (rest !== ".asdf/shims") return null;
  const wanted = new Map<string, string>();
  for (const line of readSmall(join(home, ".tool-versions")).split("\n")) {
    const [, tool, version] = /^([\w-]+)\s+([\w.+-]+)/.exec(line) ?? [];
    if (tool !== undefined && version !== undefined) wanted.set(tool, version);
  }
  const found = children(installs).flatMap((tool) => {
    const name = tool.slice(installs.length + 1);
    const version = wanted.get(name);
    const chosen = version !== undefined && isFolder(join(tool, version)) ? join(tool, version) : newest(tool);
    return chosen === undefined ? [] : [installedToolchain(name, chosen)];
  });
  return merge("asdf", found);
}

/** Returns one version of one tool in a manager's `installs`. */
function installedToolchain(tool: string, folder: string): Omit<Toolchain, "name"> {
  if (tool === "node" || tool === "nodejs") return nodePrefix(folder);
  const bin = join(folder, "bin");
  return {
    mounts: [folder],
    path: [isFolder(bin) ? bin : folder],
    hidden: [join(folder, "pip.conf"), join(folder, "etc"), join(folder, "conf/settings.xml")],
  };
}

function go(rest: string, home: string): Toolchain | null {
  // Only the programs of GOPATH: the module cache next to them contains private sources.
  if (rest === "go/bin") return { name: "go", mounts: [join(home, rest)], path: [join(home, rest)] };
  const root = /^(sdk\/go[\w.]+|\.local\/go|\.go)\/bin$/.exec(rest)?.[1];
  if (root === undefined || !isFile(join(home, root, "VERSION"))) return null;
  return { name: "go", mounts: [join(home, root)], path: [join(home, rest)] };
}

function sdkman(rest: string, home: string): Toolchain | null {
  const [, candidate, version] = /^\.sdkman\/candidates\/([^/]+)\/([^/]+)\/bin$/.exec(rest) ?? [];
  if (candidate === undefined || version === undefined) return null;
  const folder = join(home, ".sdkman/candidates", candidate, version);
  // Maven refuses an empty settings file, so we cannot hide one that contains servers (and their passwords). We then
  // leave out Maven altogether.
  const settings = withoutComments(readSmall(join(folder, "conf/settings.xml")));
  if (/<(?:server|proxy|profile)\b/.test(settings)) {
    return {
      name: `sdkman ${candidate}`,
      mounts: [],
      path: [],
      note: `Left out: ${join(folder, "conf/settings.xml")} may contain credentials.`,
    };
  }
  return {
    name: `sdkman ${candidate}`,
    mounts: [folder],
    path: [join(home, rest)],
    ...(candidate === "java" ? { env: { JAVA_HOME: folder } } : {}),
  };
}

function bun(rest: string, home: string): Toolchain | null {
  if (rest !== ".bun/bin") return null;
  const modules = join(home, ".bun/install/global/node_modules");
  return { name: "bun", mounts: [join(home, rest), ...(isFolder(modules) ? [modules] : [])], path: [join(home, rest)] };
}

function deno(rest: string, home: string): Toolchain | null {
  return rest === ".deno/bin" ? { name: "deno", mounts: [join(home, rest)], path: [join(home, rest)] } : null;
}

function merge(name: string, parts: Omit<Toolchain, "name">[], path?: string[]): Toolchain {
  return {
    name,
    mounts: parts.flatMap((part) => part.mounts),
    path: path ?? parts.flatMap((part) => part.path),
    hidden: parts.flatMap((part) => part.hidden ?? []),
  };
}

function newest(folder: string): string | undefined {
  return children(folder)
    .sort((a, b) => a.localeCompare(b, "en", { numeric: true }))
    .at(-1);
}

/** Returns real folders only: a link is another name for one of them, or leads elsewhere. */
function children(folder: string): string[] {
  const entries = ifErrnoSync(() => readdirSync(folder, { withFileTypes: true }), UNREACHABLE, []);
  const folders = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith("."));
  return folders.slice(0, TOOLS_MAX).map((entry) => join(folder, entry.name));
}

function resolveWithin(path: string, folder: string): string | undefined {
  const real = realPathOrNull(path);
  return real?.startsWith(`${folder}/`) ? real : undefined;
}

/** Removes the comments from XML text. An unterminated comment stays. */
function withoutComments(text: string): string {
  let result = "";
  for (let at = 0; ; ) {
    const begin = text.indexOf("<!--", at);
    const end = begin < 0 ? -1 : text.indexOf("-->", begin + 4);
    if (end < 0) return result + text.slice(at);
    result += text.slice(at, begin);
    at = end + 3;
  }
}
