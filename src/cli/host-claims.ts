import type { Claim } from "../sandbox/attack/claim.ts";
import { workspaceClaims } from "../workspace/attack-claims.ts";
import { folderClaims } from "./folder-claims.ts";

/** What claims about the host itself need. */
export interface HostClaimOptions {
  guestPath: string;
  path: string;
}

/** Claims that no sandbox alone can be asked: what the host does with what an agent or a clone wrote. One list, for `doctor --attack` and the suites' tests. */
export function hostClaims(options: HostClaimOptions): Claim[] {
  return [...folderClaims(options), ...workspaceClaims(options)];
}
