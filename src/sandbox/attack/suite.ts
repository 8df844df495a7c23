import type { Claim } from "./claim.ts";
import { egressClaims } from "./egress-claims.ts";
import { exhaustionClaims } from "./exhaustion-claims.ts";
import { faultClaims } from "./fault-claims.ts";
import { frameClaims } from "./frame-claims.ts";
import { isolationClaims } from "./isolation-claims.ts";
import { neighbourClaims } from "./neighbour-claims.ts";
import { networkClaims } from "./network-claims.ts";
import { sightClaims } from "./sight-claims.ts";
import { trustClaims } from "./trust-claims.ts";

/** Every claim, in order of its id within its group. */
export const claims: readonly Claim[] = [
  ...sorted([...isolationClaims, ...sightClaims, ...neighbourClaims.filter(({ group }) => group === "isolation")]),
  ...sorted([...trustClaims, ...frameClaims]),
  ...sorted([...networkClaims, ...egressClaims]),
  ...sorted([...exhaustionClaims, ...neighbourClaims.filter(({ group }) => group === "exhaustion")]),
  ...faultClaims,
];

function sorted(group: Claim[]): Claim[] {
  return group.sort((a, b) => a.id.localeCompare(b.id));
}
