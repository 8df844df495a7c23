import type { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import { linkedRepository, repositoryProblem } from "../../sandbox/linked-repository.ts";
import type { StateView } from "../../sandbox/state-places.ts";
import type { Basis } from "./details.ts";

/**
 * Adds the repository of a workspace that is a linked work tree, where git inside looks for it. It is copy-on-write, so
 * git's changes inside do not reach the host. A repository from a snapshot is used only if it is still the workspace's
 * repository. `problem` says why git will not work inside.
 */
export function withRepository(basis: Basis, config: SandboxConfig, state: () => StateView): { basis: Basis; problem: string | null } {
  const found = config.workspace.kind === "folder" ? linkedRepository(config.workspace.path) : { kind: "none" as const };
  const known = basis.root.binds.find(({ ids, source }) => ids === "repository" && found.kind === "linked" && source === found.source);
  const binds = basis.root.binds.filter((bind) => bind.ids !== "repository" || bind === known);
  const others = binds.filter((bind) => bind !== known);
  const usedTargets = [...others, ...config.mounts].map((each) => each.target);
  const problem = repositoryProblem(found, usedTargets, state);
  if (problem !== null || found.kind !== "linked") return { basis: { ...basis, root: { ...basis.root, binds: others } }, problem };
  const { source, target } = found;
  const bind = known ?? { source, target, kind: "folder" as const, writable: true, layers: [], ids: "repository" as const };
  return { basis: { ...basis, root: { ...basis.root, binds: [...others, bind] } }, problem: null };
}
