import { dirname, join } from "node:path";
import type { AttackVerdict, SignedReport } from "../../contract/machine/attack-report.ts";
import type { ConformanceReport, ConformanceResult } from "../../contract/machine/machine-verbs.ts";
import { streamOf } from "../../lib/stream-of.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { signReport } from "../../suites/attack/report.ts";
import { runAttacks } from "../../suites/attack/run-attacks.ts";
import { type ConformanceResult as Result, runConformance } from "../../suites/conformance/run-conformance.ts";
import { runStationAttacks } from "../../suites/station-attack/run-station-attacks.ts";
import type { AttackedStation } from "../../suites/station-attack/station-claim.ts";
import { hostClaims } from "./host-claims.ts";

interface Subject {
  runtime: Runtime;
  /** Defaults for the configuration of every sandbox. */
  spec: object;
}

export function attackVerdicts(
  { runtime, spec }: Subject,
  options: { version: string; stateDir: string; guestPath: string; path: string },
): AsyncIterable<{ verdict: AttackVerdict } | { signed: SignedReport }> {
  const { version, stateDir, guestPath, path } = options;
  return streamOf(async (tell) => {
    const report = await runAttacks(runtime, {
      version,
      stateDir,
      probePath: join(dirname(guestPath), "caisson-probe"),
      more: hostClaims({ guestPath, path }),
      spec,
      onVerdict: (verdict) => tell({ verdict }),
    });
    tell({ signed: await signReport(report, { stateDir }) });
  });
}

export function stationVerdicts(options: {
  version: string;
  stateDir: string;
  startAttackedStation: () => Promise<AttackedStation & AsyncDisposable>;
}): AsyncIterable<{ verdict: AttackVerdict } | { signed: SignedReport }> {
  const { version, stateDir } = options;
  return streamOf(async (tell) => {
    await using station = await options.startAttackedStation();
    const report = await runStationAttacks(station, { version, onVerdict: (verdict) => tell({ verdict }) });
    tell({ signed: await signReport(report, { stateDir }) });
  });
}

export function conformanceResults({
  runtime,
  spec,
}: Subject): AsyncIterable<{ result: ConformanceResult } | { report: ConformanceReport }> {
  return streamOf(async (tell) => {
    const report = await runConformance(runtime, { spec, onResult: (result) => tell({ result: plain(result) }) });
    tell({ report: { ...report, results: report.results.map(plain) } });
  });
}

function plain(result: Result): ConformanceResult {
  if (result.outcome !== "failed") return result;
  const { error } = result;
  return { ...result, error: error instanceof Error ? error.message : String(error) };
}
