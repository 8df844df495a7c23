import type { Claim, ClaimGroup } from "./claim.ts";
import { egressClaims } from "./egress-claims.ts";
import { exhaustionClaims } from "./exhaustion-claims.ts";
import { faultClaims } from "./fault-claims.ts";
import { frameClaims } from "./frame-claims.ts";
import { isolationClaims } from "./isolation-claims.ts";
import { neighbourClaims } from "./neighbour-claims.ts";
import { networkClaims } from "./network-claims.ts";
import { shareClaims } from "./share-claims.ts";
import { sightClaims } from "./sight-claims.ts";
import { trustClaims } from "./trust-claims.ts";

/** Every claim, sorted by id within its group. */
export const claims: readonly Claim[] = [
  ...inGroup("isolation", [...isolationClaims, ...sightClaims, ...neighbourClaims, ...shareClaims]),
  ...inGroup("host trust", [...trustClaims, ...frameClaims]),
  ...inGroup("network", [...networkClaims, ...egressClaims]),
  ...inGroup("exhaustion", [...exhaustionClaims, ...neighbourClaims, ...shareClaims]),
  ...faultClaims,
];

function inGroup(group: ClaimGroup, claims: readonly Claim[]): Claim[] {
  return claims.filter((claim) => claim.group === group).sort((a, b) => a.id.localeCompare(b.id));
}
