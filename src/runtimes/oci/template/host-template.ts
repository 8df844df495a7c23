import { lstatSync, readdirSync, readlinkSync, realpathSync } from "node:fs";
import { dirname, isAbsolute, join, normalize } from "node:path";
import { withoutTrailingSlashes } from "../../../contract/trailing-slashes.ts";
import { lstatOrNull } from "../../../lib/lstat-or-null.ts";
import { type EtcCopy, etcCopies, etcGenerated, type GeneratedFile, noAccounts, sandboxUser } from "./etc-files.ts";
import { isWithin, skeletonFolders } from "./skeleton-folders.ts";
import { systemPackages } from "./system-packages.ts";
import type { Toolchain } from "./toolchain.ts";
import { toolchainAt } from "./toolchains.ts";

/** Entries of PATH beyond this many are not looked at. */
const PATH_ENTRIES_MAX = 128;
const standardPath = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/** Folders that the runtime mounts itself: nothing of the host may be put below them. */
const reservedFolders = ["/dev", "/proc", "/run", "/sys", "/tmp", "/var", "/workspace"];

/**
 * A folder or file of the host that is visible inside. To be mounted with everything below it read-only, `nosuid` and
 * `nodev`.
 */
export interface TemplateBind {
  source: string;
  target: string;
  kind: "folder" | "file";
  why: string;
}

export interface TemplateFolder {
  path: string;
  mode: number;
  owner: "root" | "user";
}

export interface TemplateEntry {
  path: string;
  /** `mounted`, `copied`, `generated`, `link`, `hidden` or `ignored`. */
  what: "mounted" | "copied" | "generated" | "link" | "hidden" | "ignored";
  why: string;
}

/**
 * The machine's own toolchain as a template: all that a sandbox sees of the host. Plain data; nothing has been made
 * yet.
 */
export interface HostTemplate {
  /** Parents before children. */
  binds: readonly TemplateBind[];
  /** Every folder of the skeleton, mount points included; parents before children. */
  folders: readonly TemplateFolder[];
  links: readonly { path: string; target: string }[];
  files: readonly GeneratedFile[];
  /** Paths of the host's /etc copied into the skeleton. */
  copies: readonly EtcCopy[];
  /** Paths inside, below the binds, that exist and must be covered (an OCI runtime's `maskedPaths`). */
  hidden: readonly string[];
  /** What every command is given, PATH among them. */
  env: Readonly<Record<string, string>>;
  /** All of it for people: what is visible where, why, and which entries of PATH were left out. */
  describe(): TemplateEntry[];
}

export interface HostTemplateOptions {
  /** The user's home folder. */
  home: string;
  /** The user's PATH. */
  path: string;
  /** Folders from which nothing may come, such as the workspace. */
  avoid?: readonly string[];
  /** Where nothing may be mounted; the default suits the oci runtime. */
  reserved?: readonly string[];
  /** Root inside may install packages of the distribution, over the machine's own. */
  installsPackages?: boolean;
}

/**
 * Decides what of this machine is visible inside: /usr with its links, of /etc what programs need to work, and
 * toolchains in the user's home that are on PATH and of a known layout. Everything else on PATH is ignored, with a
 * note. Looks at the disk, changes nothing. Never throws for odd input.
 */
export async function hostTemplate(options: HostTemplateOptions): Promise<HostTemplate> {
  // Synchronous on purpose: a few dozen look-ups of local names cost less than one trip through the thread pool each.
  const reserved = options.reserved ?? reservedFolders;
  const { binds: system, links } = systemFolders();
  const picked = pickToolchains(options, { system, reserved, avoid: [...(options.avoid ?? [])] });
  const shell = exists("/bin/bash") ? "/bin/bash" : "/bin/sh";
  const packages = options.installsPackages === true ? systemPackages() : null;
  const files = [
    ...etcGenerated({ shell, accounts: packages?.accounts ?? noAccounts }),
    ...(packages?.files ?? []),
    npmSettings,
    ...picked.files,
  ];
  const copies = [...etcCopies(), ...(packages?.copies ?? [])].filter(({ path }) => exists(path));
  const binds = withoutNested([...system, ...picked.binds, ...(packages?.binds ?? [])]);
  const hidden = [...hiddenBelowUsr, ...picked.hidden].filter((path) => exists(path));
  const path = [...new Set([...picked.path, ...standardPath])];
  const env = { ...nodeHeaders(path), ...picked.env, PATH: [userPrograms, ...path].join(":") };
  return {
    binds,
    folders: skeletonFolders({
      paths: [
        ...binds.map(mountPoint),
        ...[...files, ...picked.links].map((each) => dirname(each.path)),
        userPrograms,
        ...(packages?.folders ?? []),
      ],
      users: picked.folders,
    }),
    links: [...links, ...fixedLinks, ...picked.links],
    files: [...files, ...binds.filter(({ kind }) => kind === "file").map(({ target }) => ({ path: target, mode: 0o644, content: "" }))],
    copies,
    hidden,
    env,
    describe: () => [
      ...binds.map(({ target, why }): TemplateEntry => ({ path: target, what: "mounted", why })),
      ...[...links, ...picked.links].map(
        ({ path, target }): TemplateEntry => ({ path, what: "link", why: `leads to ${target}, as on the host` }),
      ),
      ...copies.map(({ path, why }): TemplateEntry => ({ path, what: "copied", why })),
      ...files.map(({ path }): TemplateEntry => ({ path, what: "generated", why: "generated" })),
      ...hidden.map((path): TemplateEntry => ({ path, what: "hidden", why: "may hold credentials" })),
      ...picked.ignored,
    ],
  };
}

/**
 * Settings for the whole machine that lie below /usr, npm's with its tokens among them. Some distributions keep their
 * own defaults in /usr/etc, so there only the files that may hold a secret are covered.
 */
const hiddenBelowUsr = [
  "/usr/etc/gitconfig",
  "/usr/etc/npmrc",
  "/usr/local/etc",
  "/usr/lib/node_modules/npm/npmrc",
  "/usr/local/lib/node_modules/npm/npmrc",
];

const fixedLinks = [
  { path: "/etc/mtab", target: "/proc/self/mounts" },
  { path: "/var/run", target: "/run" },
  { path: "/var/lock", target: "/run/lock" },
  { path: "/var/tmp", target: "/tmp" },
];

/**
 * Where programs inside install others for the user: pip, uv and, by this setting, npm, whose own place is not
 * writable.
 */
const userPrograms = `${sandboxUser.home}/.local/bin`;
const npmSettings: GeneratedFile = { path: `${sandboxUser.home}/.npmrc`, mode: 0o644, content: `prefix=${sandboxUser.home}/.local\n` };

/** Native packages are compiled against the headers that are there, instead of ones that a sandbox cannot download. */
function nodeHeaders(path: readonly string[]): { npm_config_nodedir?: string } {
  const node = path.map((folder) => join(folder, "node")).find(exists);
  const prefix = node === undefined ? undefined : dirname(dirname(node));
  return prefix !== undefined && exists(join(prefix, "include/node/common.gypi")) ? { npm_config_nodedir: prefix } : {};
}

/** /usr, and /bin and its kin as the host has them: links on a merged tree, folders otherwise. */
function systemFolders(): { binds: TemplateBind[]; links: { path: string; target: string }[] } {
  const binds: TemplateBind[] = [{ source: "/usr", target: "/usr", kind: "folder", why: "programs and libraries of the system" }];
  const links: { path: string; target: string }[] = [];
  for (const name of readdirSync("/").sort()) {
    if (!/^(?:bin|sbin|lib\w*)$/.test(name)) continue;
    const path = `/${name}`;
    const stat = lstatSync(path);
    if (stat.isSymbolicLink()) links.push({ path, target: readlinkSync(path) });
    else if (stat.isDirectory()) binds.push({ source: path, target: path, kind: "folder", why: "programs and libraries of the system" });
  }
  return { binds, links };
}

interface Picked {
  binds: TemplateBind[];
  files: GeneratedFile[];
  folders: string[];
  links: { path: string; target: string }[];
  hidden: string[];
  env: Record<string, string>;
  path: string[];
  ignored: TemplateEntry[];
}

function pickToolchains(
  options: HostTemplateOptions,
  rules: { system: readonly TemplateBind[]; reserved: readonly string[]; avoid: string[] },
): Picked {
  const picked: Picked = { binds: [], files: [], folders: [], links: [], hidden: [], env: {}, path: [], ignored: [] };
  const home = usableHome(options.home, rules.reserved);
  const homeProblem = home === null ? whyUnusable(options.home, rules.reserved) : null;
  const entries = [...new Set(options.path.split(":"))].filter((entry) => entry !== "").slice(0, PATH_ENTRIES_MAX);
  for (const entry of entries) {
    const outcome = admit(entry, home, rules);
    if (typeof outcome === "string") {
      const isBelowHome = homeProblem !== null && isWithin(realFolder(entry) ?? entry, realFolder(options.home) ?? options.home);
      picked.ignored.push({ path: entry, what: "ignored", why: outcome === UNKNOWN_LAYOUT && isBelowHome ? homeProblem : outcome });
      continue;
    }
    for (const path of outcome.mounts) {
      const kind = lstatOrNull(path)?.isDirectory() === true ? "folder" : "file";
      picked.binds.push({ source: path, target: path, kind, why: `${outcome.name}, which is on PATH` });
    }
    picked.files.push(...(outcome.files ?? []).map((file) => ({ ...file, mode: 0o644 })));
    picked.folders.push(...(outcome.folders ?? []));
    picked.links.push(...(outcome.links ?? []));
    picked.hidden.push(...(outcome.hidden ?? []));
    picked.path.push(...outcome.path);
    Object.assign(picked.env, outcome.env);
    if (outcome.note !== undefined) picked.ignored.push({ path: entry, what: "ignored", why: outcome.note });
  }
  picked.files = picked.files.filter((file, index, all) => all.findIndex(({ path }) => path === file.path) === index);
  return picked;
}

const UNKNOWN_LAYOUT: string = "not the layout of a toolchain that is known to hold no credentials";

/** The toolchain behind one entry of PATH, or the reason why it is left out. */
function admit(
  entry: string,
  home: string | null,
  rules: { system: readonly TemplateBind[]; reserved: readonly string[]; avoid: string[] },
): Toolchain | string {
  if (!isAbsolute(entry) || normalize(entry) !== (withoutTrailingSlashes(entry) || "/")) return "not a plain absolute path";
  const folder = realFolder(entry);
  if (folder === null) return "not a folder that exists";
  if (rules.system.some(({ source }) => isWithin(folder, source))) return { name: "system", mounts: [], path: [entry] };
  const avoid = rules.avoid.map((path) => realFolder(path) ?? path);
  const untrusted = (path: string) => avoid.find((each) => isWithin(path, each));
  const found = untrusted(folder) !== undefined ? null : (optFolder(folder) ?? (home === null ? null : toolchainAt(folder, home)));
  const from = [folder, ...(found?.mounts ?? [])].map(untrusted).find((each) => each !== undefined);
  if (from !== undefined) return `lies in ${from}, whose content is not to be trusted`;
  if (found === null) return UNKNOWN_LAYOUT;
  const problem = found.mounts.map((path) => mountProblem(path, rules.reserved)).find((text) => text !== null);
  return problem ?? found;
}

/** A program's own folder in /opt, when one of its folders is on PATH. */
function optFolder(folder: string): Toolchain | null {
  const own = /^\/opt\/[^/]+/.exec(folder)?.[0];
  if (own === undefined) return null;
  if (lstatOrNull(own)?.uid !== 0) return null;
  return { name: own, mounts: [own], path: [folder], hidden: [join(own, "etc"), join(own, "lib/node_modules/npm/npmrc")] };
}

function mountProblem(path: string, reserved: readonly string[]): string | null {
  const taken = reserved.find((folder) => isWithin(path, folder));
  if (taken !== undefined) return `lies in ${taken}, which sandboxes have for themselves`;
  const stat = lstatOrNull(path);
  if (stat === null) return `${path} may not be entered`;
  if (realPath(path) !== path) return `${path} is reached through a link`;
  // Whoever can write there could hand programs to every sandbox.
  if ((stat.mode & 0o002) !== 0) return `${path} can be written by everybody`;
  if (/[\n\0:,\\]/.test(path)) return `${path} has characters that cannot be mounted`;
  return null;
}

function usableHome(home: string, reserved: readonly string[]): string | null {
  if (!isAbsolute(home)) return null;
  const real = realFolder(home);
  return real === null || real === "/" || reserved.some((folder) => isWithin(real, folder)) ? null : real;
}

/** Why toolchains of a home are not looked for. */
function whyUnusable(home: string, reserved: readonly string[]): string | null {
  const real = isAbsolute(home) ? realFolder(home) : null;
  const taken = real === null ? undefined : reserved.find((folder) => isWithin(real, folder));
  return taken === undefined ? null : `the home folder is below ${taken}, which sandboxes have for themselves`;
}

function realFolder(path: string): string | null {
  const real = realPath(path);
  return real !== null && lstatOrNull(real)?.isDirectory() === true ? real : null;
}

function realPath(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

function exists(path: string): boolean {
  return lstatOrNull(path) !== null;
}

function withoutNested(binds: TemplateBind[]): TemplateBind[] {
  const sorted = binds.toSorted((a, b) => (a.target < b.target ? -1 : 1));
  return sorted.filter((bind, index) => !sorted.slice(0, index).some((other) => isWithin(bind.target, other.target)));
}

function mountPoint({ kind, target }: TemplateBind): string {
  return kind === "folder" ? target : dirname(target);
}
