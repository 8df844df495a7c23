import type { Claim } from "../../suites/attack/claim.ts";
import { folderClaims } from "./folder-claims.ts";
import { workspaceClaims } from "./workspace-claims.ts";

/** What claims about the host itself need. */
export interface HostClaimOptions {
  guestPath: string;
  path: string;
}

/**
 * Claims that no sandbox alone can be asked: what the host does with what an agent or a clone wrote. One list, for
 * `doctor --attack` and the suites' tests.
 */
export function hostClaims(options: HostClaimOptions): Claim[] {
  return [...folderClaims(options), ...workspaceClaims(options)];
}
