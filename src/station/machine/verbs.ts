import type { AttackVerdict, SignedReport } from "../../contract/attack-report.ts";
import type {
  ConformanceReport,
  ConformanceResult,
  DoctorReport,
  RuntimeChoice,
  SuiteSubject,
  TaskNeeds,
} from "../../contract/machine-verbs.ts";

/** What can be asked of the machine the station runs on. */
export interface MachineVerbs {
  /**
   * Probes every runtime, or those named, by really starting a sandbox in it; with `model`, asks that model for a word.
   * Throws `invalid` for an unknown name of a runtime.
   */
  doctor(options?: { only?: readonly string[]; model?: string }): Promise<DoctorReport>;
  /** The runtime that suits a task, and why; null when none does. */
  choose(needs: TaskNeeds): Promise<RuntimeChoice | null>;
  /** Attacks a runtime: each verdict as it is reached, at last the signed report. Throws `unavailable`. */
  attack(subject?: SuiteSubject): AsyncIterable<{ verdict: AttackVerdict } | { signed: SignedReport }>;
  /** Tries whether a runtime does what every runtime must: each result, at last the report. Throws `unavailable`. */
  conformance(subject?: SuiteSubject): AsyncIterable<{ result: ConformanceResult } | { report: ConformanceReport }>;
}
