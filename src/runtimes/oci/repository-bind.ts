import type { SandboxSpec } from "../../contract/sandbox.ts";
import { type LinkedRepository, linkedRepository } from "../../sandbox/linked-repository.ts";
import { isWithin } from "../../sandbox/shared-folders.ts";
import type { StateView } from "../../sandbox/state-places.ts";
import type { Basis } from "./details.ts";

/** Folders that a sandbox has for itself. */
const reserved = ["/.caisson", "/dev", "/etc", "/proc", "/run", "/sys", "/tmp", "/var", "/workspace"];

/**
 * Adds the repository of a workspace that is a linked work tree, where git inside looks for it, copy-on-write: what git
 * does to it inside, is not done outside. One that a snapshot names is taken only while it is still the workspace's.
 * `problem` says why git will not work inside.
 */
export function withRepository(basis: Basis, spec: SandboxSpec, state: () => StateView): { basis: Basis; problem: string | null } {
  const found = spec.workspace.kind === "folder" ? linkedRepository(spec.workspace.path) : { kind: "none" as const };
  const known = basis.root.binds.find(({ ids, source }) => ids === "repository" && found.kind === "linked" && source === found.source);
  const binds = basis.root.binds.filter((bind) => bind.ids !== "repository" || bind === known);
  const others = binds.filter((bind) => bind !== known);
  const taken = [...others, ...spec.mounts].map((each) => each.target);
  const problem = problemOf(found, taken, state);
  if (problem !== null || found.kind !== "linked") return { basis: { ...basis, root: { ...basis.root, binds: others } }, problem };
  const { source, target } = found;
  const bind = known ?? { source, target, kind: "folder" as const, writable: true, layers: [], ids: "repository" as const };
  return { basis: { ...basis, root: { ...basis.root, binds: [...others, bind] } }, problem: null };
}

function problemOf(found: LinkedRepository, others: readonly string[], state: () => StateView): string | null {
  if (found.kind === "none") return null;
  if (found.kind === "refused") return found.why;
  const { source, target } = found;
  const taken = [...reserved, ...others].find((path) => isWithin(target, path) || isWithin(path, target));
  if (taken !== undefined) return `its repository would be at ${target}, and sandboxes have ${taken} for themselves`;
  if (/[\n\0:,\\]/.test(source + target)) return `its repository ${source} has characters in its name that cannot be mounted`;
  try {
    state().refuse(source, { access: "ro" });
    return null;
  } catch {
    return `its repository ${source} is in the folder where Caisson keeps its own state`;
  }
}
