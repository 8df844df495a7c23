import { CaissonError } from "../../contract/error.ts";
import type { Capabilities, SandboxSpec } from "../../contract/sandbox.ts";
import type { HidingRules } from "../../contract/workspace-guard.ts";
import { findCredentialFiles } from "../../workspace/credential-files.ts";
import { guardedPaths } from "../../workspace/guarded-paths.ts";
import type { KnownPlaces } from "../../workspace/wrong-place.ts";

const WORKSPACE = "/workspace";
const NAMES_TOLD = 5;
const HIDDEN_MAX = 512;

type PathAbility = Pick<Capabilities, "paths" | "isolation" | "reasons">;

/**
 * A spec whose sandbox does not see the files of its workspace that look like credentials. Says how many those are,
 * once. A runtime that cannot hide files is told of only where somebody asked for more than the default: then this
 * throws `unsupported`.
 */
export function hideCredentials(
  spec: SandboxSpec,
  options: { rules: HidingRules; capabilities: PathAbility; notice: (text: string) => void },
): SandboxSpec {
  const { rules, capabilities, notice } = options;
  if (spec.workspace.kind !== "folder") return spec;
  const { paths, complete } = findCredentialFiles(spec.workspace.path, rules);
  if (!complete) notice(`${spec.workspace.path} was not looked through to the end: credentials deep in it are visible inside`);
  if (paths.length === 0) return spec;
  const names = `${paths.slice(0, NAMES_TOLD).join(", ")}${paths.length > NAMES_TOLD ? ", …" : ""}`;
  const what = paths.length === 1 ? "1 file that looks like a credential is" : `${paths.length} files that look like credentials are`;
  if (!capabilities.paths) {
    if (rules.hide.length > 0) throw cannot("hide files", { capabilities, without: "Leave --hide out." });
    notice(`${what} visible inside, since this runtime cannot hide files: ${names}`);
    return spec;
  }
  if (paths.length > HIDDEN_MAX) {
    throw new CaissonError(
      "too_large",
      `${paths.length} files of ${spec.workspace.path} look like credentials; at most ${HIDDEN_MAX} can be hidden`,
      {
        hint: "Show those that are none with --show PATTERN.",
      },
    );
  }
  notice(`${what} hidden inside: ${names} (--show NAME shows it)`);
  return { ...spec, deniedPaths: [...spec.deniedPaths, ...paths.map(inside)] };
}

/**
 * A spec whose sandbox, where its folder is given read-write, can write nothing there that runs outside by itself.
 * Throws `unsupported` where that cannot be held.
 */
export function guardWritable(spec: SandboxSpec, options: { places: Pick<KnownPlaces, "home">; capabilities: PathAbility }): SandboxSpec {
  const { workspace } = spec;
  const { capabilities } = options;
  // Without a wall everything of the user's is within reach, and its warning says so.
  if (workspace.kind !== "folder" || workspace.access !== "rw" || capabilities.isolation === 0) return spec;
  const guarded = guardedPaths(workspace.path, options.places).map(inside);
  if (guarded.length === 0) return spec;
  if (!capabilities.paths)
    throw cannot("keep git's hooks and settings from being changed", { capabilities, without: "--allow-hooks does without." });
  return { ...spec, readOnlyPaths: [...spec.readOnlyPaths, ...guarded.filter((path) => !spec.deniedPaths.includes(path))] };
}

function inside(path: string): string {
  return `${WORKSPACE}/${path}`;
}

function cannot(what: string, { capabilities, without }: { capabilities: PathAbility; without: string }): CaissonError {
  return new CaissonError("unsupported", `this runtime cannot ${what}`, {
    hint: `${capabilities.reasons.paths ?? "Use the oci runtime."} ${without}`,
  });
}
