import { CaissonError } from "../../contract/error.ts";
import type { Capabilities, FolderMount, SandboxSpec } from "../../contract/sandbox.ts";
import type { HidingRules } from "../../contract/workspace-guard.ts";
import { WORKSPACE } from "../../sandbox/path.ts";
import { resolveMounts, sharedFolders } from "../../sandbox/shared-folders.ts";
import { viewState } from "../../sandbox/state-places.ts";
import { findCredentialFiles } from "../../workspace/credential-files.ts";
import { guardedPaths } from "../../workspace/guarded-paths.ts";
import { type KnownPlaces, whyWrongPlace } from "../../workspace/wrong-place.ts";

const NAMES_TOLD = 5;
const HIDDEN_MAX = 512;

type PathAbility = Pick<Capabilities, "paths" | "isolation" | "reasons">;

/**
 * Mounts whose folders are there, without links, and are not those that hold keys, the system or Caisson's own state: a
 * mount is always named, but hardly anybody means the whole of one of these. Throws `invalid`, `not_found`, `denied`.
 */
export function checkedMounts(mounts: readonly FolderMount[], places: KnownPlaces): FolderMount[] {
  const resolved = resolveMounts(mounts, { state: () => viewState(places.stateDir) });
  for (const { path } of resolved) {
    const why = whyWrongPlace(path, places);
    if (why === null) continue;
    throw new CaissonError("invalid", `refusing to mount ${path}: ${why}`, { hint: "Mount the folder in it that is needed, by its name." });
  }
  return resolved;
}

/**
 * A spec whose sandbox does not see the files of these folders of its own that look like credentials. Says how many
 * those are, once for each folder. A runtime that cannot hide files is told of only where somebody asked for more than
 * the default: then this throws `unsupported`.
 */
export async function hideCredentials(
  spec: SandboxSpec,
  options: { folders: readonly FolderMount[]; rules: HidingRules; capabilities: PathAbility; notice: (text: string) => void },
): Promise<SandboxSpec> {
  const denied: string[] = [];
  for (const folder of options.folders) denied.push(...(await hiddenIn(folder, options)));
  if (denied.length > HIDDEN_MAX) {
    throw new CaissonError("too_large", `${denied.length} files look like credentials; at most ${HIDDEN_MAX} can be hidden`, {
      hint: "Show those that are none with --show PATTERN.",
    });
  }
  return denied.length === 0 ? spec : { ...spec, deniedPaths: [...spec.deniedPaths, ...denied] };
}

/** Paths inside. */
async function hiddenIn(
  { path: folder, target }: FolderMount,
  { rules, capabilities, notice }: { rules: HidingRules; capabilities: PathAbility; notice: (text: string) => void },
): Promise<string[]> {
  const { paths: found, complete } = await findCredentialFiles(folder, rules);
  if (!complete) notice(`${folder} was not looked through to the end: credentials deep in it are visible inside`);
  if (found.length === 0) return [];
  const paths = found.map((path) => `${target}/${path}`);
  const shown = target === WORKSPACE ? found : paths;
  const names = `${shown.slice(0, NAMES_TOLD).join(", ")}${shown.length > NAMES_TOLD ? ", …" : ""}`;
  const what = paths.length === 1 ? "1 file that looks like a credential is" : `${paths.length} files that look like credentials are`;
  if (!capabilities.paths) {
    if (rules.hide.length > 0) throw cannot("hide files", { capabilities, without: "Leave --hide out." });
    notice(`${what} visible inside, since this runtime cannot hide files: ${names}`);
    return [];
  }
  notice(`${what} hidden inside: ${names} (--show NAME shows it)`);
  return paths;
}

/**
 * A spec whose sandbox, where a folder is given read-write, can write nothing there that runs outside by itself.
 * Throws `unsupported` where that cannot be held.
 */
export function guardWritable(spec: SandboxSpec, options: { places: Pick<KnownPlaces, "home">; capabilities: PathAbility }): SandboxSpec {
  const { capabilities } = options;
  const written = sharedFolders(spec).filter(({ access }) => access === "rw");
  // Without a wall everything of the user's is within reach, and its warning says so.
  if (capabilities.isolation === 0) return spec;
  const guarded = written.flatMap(({ path, target }) => guardedPaths(path, options.places).map((below) => `${target}/${below}`));
  if (guarded.length === 0) return spec;
  if (!capabilities.paths)
    throw cannot("keep git's hooks and settings from being changed", { capabilities, without: "--allow-hooks does without." });
  return { ...spec, readOnlyPaths: [...spec.readOnlyPaths, ...guarded.filter((path) => !spec.deniedPaths.includes(path))] };
}

function cannot(what: string, { capabilities, without }: { capabilities: PathAbility; without: string }): CaissonError {
  return new CaissonError("unsupported", `this runtime cannot ${what}`, {
    hint: `${capabilities.reasons.paths ?? "Use the oci runtime."} ${without}`,
  });
}
