import { arch, release } from "node:os";
import type { AttackReport } from "../../contract/machine/attack-report.ts";
import { within } from "../attack/attack-context.ts";
import { type Verdict, verdictOf } from "../attack/claim.ts";
import { ask } from "./ask.ts";
import { clientClaims } from "./client-claims.ts";
import { codeClaims } from "./code-claims.ts";
import { headerClaims } from "./header-claims.ts";
import { ownerClaims } from "./owner-claims.ts";
import { previewClaims } from "./preview-claims.ts";
import { reachClaims } from "./reach-claims.ts";
import { roomClaims } from "./room-claims.ts";
import type { AttackedStation, StationClaim, StationContext } from "./station-claim.ts";
import { textClaims } from "./text-claims.ts";
import { tokenClaims } from "./token-claims.ts";

/** The time limit of one claim, including all of its waits. */
const CLAIM_MS_MAX = 180_000;

/** How long a live station may take for a health check on a busy machine. */
const ALIVE_MS = 15_000;

export const stationClaims: readonly StationClaim[] = [
  ...ownerClaims,
  ...reachClaims,
  ...textClaims,
  ...roomClaims,
  ...tokenClaims,
  ...headerClaims,
  ...previewClaims,
  ...clientClaims,
  // Last, so the code from the start has expired, or nearly so.
  ...codeClaims,
];

/**
 * Attacks a station that was started for this purpose over its port, and our client with a lying server. Every request
 * goes to an address on this machine. A claim that throws gets a verdict instead.
 */
export async function runStationAttacks(
  station: AttackedStation,
  options: { version: string; onVerdict?: (verdict: Verdict) => void; only?: readonly string[] },
): Promise<AttackReport> {
  const startedAt = new Date().toISOString();
  const token = async (owner: string) => (await station.token({ scope: "run", owner })).token;
  const [ada, bob, oldCode] = [await token("ada"), await token("bob"), await station.code()];
  const context: StationContext = { url: station.url, station, ada, bob, oldCode, within };
  const verdicts: Verdict[] = [];
  const isAlive = async () => (await ask(context, "/healthz", { timeoutMs: ALIVE_MS })).status === 200;
  for (const claim of stationClaims.filter(({ id }) => options.only === undefined || options.only.includes(id))) {
    const verdict = await verdictOf(claim, {
      async observe() {
        if (!(await isAlive())) throw new Error("the station stopped answering after an earlier claim");
        return within(`claim ${claim.id}`, claim.observe(context), CLAIM_MS_MAX);
      },
      judge: (seen) => claim.judge(seen),
    });
    verdicts.push(verdict);
    options.onVerdict?.(verdict);
  }
  return {
    kind: "caisson.attack-report",
    version: 1,
    runtime: "station",
    isolation: 0,
    versions: { caisson: options.version, node: process.version, kernel: release(), architecture: arch() },
    findings: [],
    startedAt,
    endedAt: new Date().toISOString(),
    holds: verdicts.every((each) => each.verdict !== "failed"),
    verdicts,
  };
}
