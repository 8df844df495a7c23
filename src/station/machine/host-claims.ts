import type { Claim } from "../../suites/attack/claim.ts";
import { folderClaims } from "./folder-claims.ts";
import { workspaceClaims } from "./workspace-claims.ts";

/** The options of claims about the host. */
export interface HostClaimOptions {
  guestPath: string;
  path: string;
}

/**
 * Claims that involve more than a sandbox: what the host does with files that an agent or a clone wrote. `doctor
 * --attack` and the suites' tests share this list.
 */
export function hostClaims(options: HostClaimOptions): Claim[] {
  return [...folderClaims(options), ...workspaceClaims(options)];
}
