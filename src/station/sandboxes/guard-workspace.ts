import { CaissonError } from "../../contract/error/error.ts";
import type { Capabilities, SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { FolderMount } from "../../contract/sandbox/sandbox-fields.ts";
import type { HidingRules } from "../../contract/workspace/workspace-guard.ts";
import { WORKSPACE } from "../../sandbox/path.ts";
import { resolveMounts, sharedFolders } from "../../sandbox/shared-folders.ts";
import { viewState } from "../../sandbox/state-places.ts";
import { findCredentialFiles } from "../../workspace/credential-files.ts";
import { guardedPaths } from "../../workspace/guarded-paths.ts";
import { type KnownPlaces, whyWrongPlace } from "../../workspace/wrong-place.ts";

const NAMES_MAX = 5;
const HIDDEN_MAX = 512;

type PathAbility = Pick<Capabilities, "paths" | "isolation" | "reasons">;

/**
 * Returns the mounts with links resolved. Rejects folders that do not exist, and folders with keys, the system or
 * Caisson's own state. Users name every mount, but mounting one of these as a whole is almost certainly a mistake.
 * Throws `invalid`, `not_found`, `denied`.
 */
export function checkedMounts(mounts: readonly FolderMount[], places: KnownPlaces): FolderMount[] {
  const resolved = resolveMounts(mounts, { state: () => viewState(places.stateDir) });
  for (const { path } of resolved) {
    const why = whyWrongPlace(path, places);
    if (why === null) continue;
    throw new CaissonError("invalid", `refusing to mount ${path}: ${why}`, { hint: "Mount only the subfolder that you need." });
  }
  return resolved;
}

/**
 * Returns a configuration that hides likely credential files from the sandbox, and reports their number for each
 * folder. If the runtime cannot hide files, this throws `unsupported`, but only if the caller requested more than the
 * default.
 */
export async function hideCredentials(
  config: SandboxConfig,
  options: { folders: readonly FolderMount[]; rules: HidingRules; capabilities: PathAbility; notice: (text: string) => void },
): Promise<SandboxConfig> {
  const denied: string[] = [];
  for (const folder of options.folders) denied.push(...(await hiddenIn(folder, options)));
  if (denied.length > HIDDEN_MAX) {
    throw new CaissonError("too_large", `${denied.length} files look like credentials; at most ${HIDDEN_MAX} can be hidden`, {
      hint: "Show files that are not credentials with --show PATTERN.",
    });
  }
  return denied.length === 0 ? config : { ...config, deniedPaths: [...config.deniedPaths, ...denied] };
}

/** Returns the paths to hide, as seen inside. */
async function hiddenIn(
  { path: folder, target }: FolderMount,
  { rules, capabilities, notice }: { rules: HidingRules; capabilities: PathAbility; notice: (text: string) => void },
): Promise<string[]> {
  const { paths: found, complete } = await findCredentialFiles(folder, rules);
  if (!complete) notice(`${folder} could not be searched completely: credentials deep inside it stay visible in the sandbox`);
  if (found.length === 0) return [];
  const paths = found.map((path) => `${target}/${path}`);
  const displayPaths = target === WORKSPACE ? found : paths;
  const names = `${displayPaths.slice(0, NAMES_MAX).join(", ")}${displayPaths.length > NAMES_MAX ? ", …" : ""}`;
  const what = paths.length === 1 ? "1 file that looks like a credential is" : `${paths.length} files that look like credentials are`;
  if (!capabilities.paths) {
    if (rules.hide.length > 0) throw unsupportedError("hide files", { capabilities, without: "Omit --hide." });
    notice(`${what} visible inside, because this runtime cannot hide files: ${names}`);
    return [];
  }
  notice(`${what} hidden inside: ${names} (--show NAME shows it)`);
  return paths;
}

/**
 * Returns a configuration in which the sandbox cannot change files of its read-write folders that would run code
 * outside. Throws `unsupported` if that cannot be enforced.
 */
export function guardWritable(
  config: SandboxConfig,
  options: { places: Pick<KnownPlaces, "home">; capabilities: PathAbility },
): SandboxConfig {
  const { capabilities } = options;
  const written = sharedFolders(config).filter(({ access }) => access === "rw");
  // Without isolation, the sandbox can reach all of the user's files anyway, and the runtime's warning says so.
  if (capabilities.isolation === 0) return config;
  const guarded = written.flatMap(({ path, target }) => guardedPaths(path, options.places).map((below) => `${target}/${below}`));
  if (guarded.length === 0) return config;
  if (!capabilities.paths)
    throw unsupportedError("protect git's hooks and settings from changes", {
      capabilities,
      without: "Use --allow-hooks to run without this protection.",
    });
  return { ...config, readOnlyPaths: [...config.readOnlyPaths, ...guarded.filter((path) => !config.deniedPaths.includes(path))] };
}

function unsupportedError(what: string, { capabilities, without }: { capabilities: PathAbility; without: string }): CaissonError {
  return new CaissonError("unsupported", `this runtime cannot ${what}`, {
    hint: `${capabilities.reasons.paths ?? "Use the oci runtime."} ${without}`,
  });
}
