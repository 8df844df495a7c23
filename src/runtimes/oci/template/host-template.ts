import { lstatSync, readdirSync, readlinkSync } from "node:fs";
import { dirname, isAbsolute, join, normalize } from "node:path";
import { withoutTrailingSlashes } from "../../../contract/trailing-slashes.ts";
import { isWithin, lstatOrNull, realPathOrNull } from "../../../lib/paths.ts";
import { type EtcCopy, etcCopies, etcGenerated, type GeneratedFile, noAccounts, sandboxUser } from "./etc-files.ts";
import { skeletonFolders } from "./skeleton-folders.ts";
import { systemPackages } from "./system-packages.ts";
import type { Toolchain } from "./toolchain.ts";
import { toolchainAt } from "./toolchains.ts";

/** PATH entries beyond this number are ignored. */
const PATH_ENTRIES_MAX = 128;
const standardPath = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/** Folders that the runtime mounts itself. Nothing from the host may be put below them. */
const reservedFolders = ["/dev", "/proc", "/run", "/sys", "/tmp", "/var", "/workspace"];

/** A host folder or file that is visible inside, mounted with everything below it read-only, `nosuid` and `nodev`. */
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
  what: "mounted" | "copied" | "generated" | "link" | "hidden" | "ignored";
  why: string;
}

/**
 * The machine's own toolchain as a template: everything that a sandbox sees of the host. Plain data; nothing has been
 * created yet.
 */
export interface HostTemplate {
  /** Parents before children. */
  binds: readonly TemplateBind[];
  /** Every folder of the skeleton, including mount points; parents before children. */
  folders: readonly TemplateFolder[];
  links: readonly { path: string; target: string }[];
  files: readonly GeneratedFile[];
  /** Paths of the host's /etc that are copied into the skeleton. */
  copies: readonly EtcCopy[];
  /** Paths inside, below the binds, that exist and must be covered (an OCI runtime's `maskedPaths`). */
  hidden: readonly string[];
  /** The environment of every command, including PATH. */
  env: Readonly<Record<string, string>>;
  /** Describes all of it for people: what is visible where, why, and which PATH entries were left out. */
  describe(): TemplateEntry[];
}

export interface HostTemplateOptions {
  /** The user's home folder. */
  home: string;
  /** The user's PATH. */
  path: string;
  /** Folders from which nothing may be taken, such as the workspace. */
  avoid?: readonly string[];
  /** Folders in which nothing may be mounted. The default suits the oci runtime. */
  reserved?: readonly string[];
  /** Whether root inside may install the distribution's packages over the machine's own. */
  installsPackages?: boolean;
}

/**
 * Decides what is visible of this machine inside: /usr with its links, what programs need from /etc, and toolchains in
 * the user's home that are on PATH and have a known layout. Everything else on PATH is ignored, with a note. Reads the
 * disk but changes nothing. Never throws for odd input.
 */
export async function hostTemplate(options: HostTemplateOptions): Promise<HostTemplate> {
  // Synchronous on purpose: a few dozen lookups of local names cost less than a trip through the thread pool for each.
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
        ({ path, target }): TemplateEntry => ({ path, what: "link", why: `links to ${target}, as on the host` }),
      ),
      ...copies.map(({ path, why }): TemplateEntry => ({ path, what: "copied", why })),
      ...files.map(({ path }): TemplateEntry => ({ path, what: "generated", why: "generated" })),
      ...hidden.map((path): TemplateEntry => ({ path, what: "hidden", why: "may contain credentials" })),
      ...picked.ignored,
    ],
  };
}

/**
 * Machine-wide settings below /usr, including npm's with its tokens. Some distributions keep their own defaults in
 * /usr/etc, so there only the files that may contain a secret are hidden.
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
 * Where programs inside install others for the user: pip, uv and, through this setting, npm, whose own folder is not
 * writable.
 */
const userPrograms = `${sandboxUser.home}/.local/bin`;
const npmSettings: GeneratedFile = { path: `${sandboxUser.home}/.npmrc`, mode: 0o644, content: `prefix=${sandboxUser.home}/.local\n` };

/** Lets native packages compile against the installed headers, which a sandbox could not download. */
function nodeHeaders(path: readonly string[]): { npm_config_nodedir?: string } {
  const node = path.map((folder) => join(folder, "node")).find(exists);
  const prefix = node === undefined ? undefined : dirname(dirname(node));
  return prefix !== undefined && exists(join(prefix, "include/node/common.gypi")) ? { npm_config_nodedir: prefix } : {};
}

/** Returns /usr, and /bin, /lib and the like as on the host: links on a merged tree, folders otherwise. */
function systemFolders(): { binds: TemplateBind[]; links: { path: string; target: string }[] } {
  const binds: TemplateBind[] = [{ source: "/usr", target: "/usr", kind: "folder", why: "system programs and libraries" }];
  const links: { path: string; target: string }[] = [];
  for (const name of readdirSync("/").sort()) {
    if (!/^(?:bin|sbin|lib\w*)$/.test(name)) continue;
    const path = `/${name}`;
    const stat = lstatSync(path);
    if (stat.isSymbolicLink()) links.push({ path, target: readlinkSync(path) });
    else if (stat.isDirectory()) binds.push({ source: path, target: path, kind: "folder", why: "system programs and libraries" });
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

const UNKNOWN_LAYOUT: string = "not a toolchain layout that is known to contain no credentials";

/** Returns the toolchain behind a PATH entry, or the reason for leaving it out. */
function admit(
  entry: string,
  home: string | null,
  rules: { system: readonly TemplateBind[]; reserved: readonly string[]; avoid: string[] },
): Toolchain | string {
  if (!isAbsolute(entry) || normalize(entry) !== (withoutTrailingSlashes(entry) || "/")) return "not a plain absolute path";
  const folder = realFolder(entry);
  if (folder === null) return "not an existing folder";
  if (rules.system.some(({ source }) => isWithin(folder, source))) return { name: "system", mounts: [], path: [entry] };
  const avoid = rules.avoid.map((path) => realFolder(path) ?? path);
  const findUntrusted = (path: string) => avoid.find((each) => isWithin(path, each));
  const found = findUntrusted(folder) !== undefined ? null : (optFolder(folder) ?? (home === null ? null : toolchainAt(folder, home)));
  const from = [folder, ...(found?.mounts ?? [])].map(findUntrusted).find((each) => each !== undefined);
  if (from !== undefined) return `is in ${from}, whose content is not trusted`;
  if (found === null) return UNKNOWN_LAYOUT;
  const problem = found.mounts.map((path) => mountProblem(path, rules.reserved)).find((text) => text !== null);
  return problem ?? found;
}

/** Returns a program's own folder in /opt, if one of its folders is on PATH. */
function optFolder(folder: string): Toolchain | null {
  const own = /^\/opt\/[^/]+/.exec(folder)?.[0];
  if (own === undefined) return null;
  if (lstatOrNull(own)?.uid !== 0) return null;
  return { name: own, mounts: [own], path: [folder], hidden: [join(own, "etc"), join(own, "lib/node_modules/npm/npmrc")] };
}

function mountProblem(path: string, reserved: readonly string[]): string | null {
  const reservedFolder = reserved.find((folder) => isWithin(path, folder));
  if (reservedFolder !== undefined) return `is in ${reservedFolder}, which sandboxes use themselves`;
  const stat = lstatOrNull(path);
  if (stat === null) return `${path} is not accessible`;
  if (realPathOrNull(path) !== path) return `${path} is reached through a link`;
  // Users who can write there could plant programs in every sandbox.
  if ((stat.mode & 0o002) !== 0) return `${path} is writable by everybody`;
  if (/[\n\0:,\\]/.test(path)) return `${path} contains characters that cannot be mounted`;
  return null;
}

function usableHome(home: string, reserved: readonly string[]): string | null {
  if (!isAbsolute(home)) return null;
  const real = realFolder(home);
  return real === null || real === "/" || reserved.some((folder) => isWithin(real, folder)) ? null : real;
}

/** Returns why the toolchains of a home are not searched, or null. */
function whyUnusable(home: string, reserved: readonly string[]): string | null {
  const real = isAbsolute(home) ? realFolder(home) : null;
  const reservedFolder = real === null ? undefined : reserved.find((folder) => isWithin(real, folder));
  return reservedFolder === undefined ? null : `the home folder is below ${reservedFolder}, which sandboxes use themselves`;
}

function realFolder(path: string): string | null {
  const real = realPathOrNull(path);
  return real !== null && lstatOrNull(real)?.isDirectory() === true ? real : null;
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
