import { CaissonError } from "../../contract/error/error.ts";
import { ignore } from "../../lib/failures.ts";
import { cleanAddress, sameHost, submoduleAddress } from "./address.ts";
import type { GitSource } from "./git-mirror.ts";
import { type GitOptions, hostGit } from "./host-git.ts";
import { checkSubmoduleOrigin } from "./submodule-origin.ts";

const SUBMODULES_MAX = 100;
const SUBMODULE_DEPTH_MAX = 5;

export interface Submodule {
  name: string;
  path: string;
  /** The source, with the commit as its ref. */
  source: GitSource & { ref: string };
}

/**
 * Returns the submodules of a commit. Their names, paths and addresses are data from the remote, so we check them.
 * Throws `unsafe`, `denied`, `too_large`.
 */
export async function submodulesOf(
  what: { source: GitSource; mirror: string; commit: string; depth: number },
  git: Pick<GitOptions, "path" | "home">,
): Promise<Submodule[]> {
  const url = cleanAddress(what.source.url);
  const asking = hostGit(["config", "--blob", `${what.commit}:.gitmodules`, "--null", "--list"], { ...git, gitDir: what.mirror });
  const text = await ignore(asking, "git fails for a commit without submodules");
  if (!text) return [];
  const modules = parseSubmodules(text.toString("utf8"));
  if (modules.size > 0 && what.depth >= SUBMODULE_DEPTH_MAX)
    throw new CaissonError("unsafe", `submodules of ${url} are nested deeper than ${SUBMODULE_DEPTH_MAX}`);
  if (modules.size > SUBMODULES_MAX)
    throw new CaissonError("too_large", `${url} has ${modules.size} submodules; the limit is ${SUBMODULES_MAX}`);
  const found: Submodule[] = [];
  for (const [name, module] of modules) {
    if (!module.path || !module.url || !isSafe(name) || !isSafe(module.path))
      throw new CaissonError("unsafe", `the submodule ${JSON.stringify(name)} of ${url} has an unsafe path or name`);
    const ref = await gitlink(what, module.path, git);
    // Listed in the file, but not part of this commit.
    if (ref === null) continue;
    const address = submoduleAddress(what.source.url, module.url);
    const { keyPath, submodulesFrom = [] } = what.source;
    checkSubmoduleOrigin({ name, address }, { source: what.source.url, allowed: submodulesFrom });
    const key = keyPath !== undefined && sameHost(address, what.source.url) ? { keyPath } : {};
    found.push({ name, path: module.path, source: { kind: "git", url: address, ref, submodules: true, submodulesFrom, ...key } });
  }
  return found;
}

/** Parses the settings of a `.gitmodules` as listed by `git config --null`. */
export function parseSubmodules(text: string): Map<string, { path?: string; url?: string }> {
  const modules = new Map<string, { path?: string; url?: string }>();
  for (const entry of text.split("\0")) {
    const match = /^submodule\.(.+)\.(path|url)\n([\s\S]*)$/.exec(entry);
    if (match?.[1] && match[2]) modules.set(match[1], { ...modules.get(match[1]), [match[2]]: match[3] ?? "" });
  }
  return modules;
}

async function gitlink(
  what: { mirror: string; commit: string },
  path: string,
  git: Pick<GitOptions, "path" | "home">,
): Promise<string | null> {
  const line = await hostGit(["--literal-pathspecs", "ls-tree", "-z", what.commit, "--", path], { ...git, gitDir: what.mirror });
  return /^160000 commit ([0-9a-f]{40,64})\t/.exec(line.toString("utf8"))?.[1] ?? null;
}

const isSafe = (name: string) =>
  !/^[/-]|[\0\n]/.test(name) &&
  name.split("/").every((part) => part !== "" && part !== "." && part !== ".." && part.toLowerCase() !== ".git");
