import type { AttackVerdict, SignedReport } from "../../contract/attack-report.ts";
import type {
  AttackSubject,
  ConformanceReport,
  ConformanceResult,
  DoctorReport,
  MachineStats,
  MachineUsage,
  ModelList,
  NamedThing,
  Pruned,
  PruneMachine,
  RestoredBackup,
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
  /**
   * The models that this machine's keys allow. With `check`, throws `invalid` for a name that is not a model's and
   * `unauthenticated` for one whose key is missing; no provider is asked.
   */
  models(options?: { check?: string }): Promise<ModelList>;
  /** The runtime that suits a task, and why; null when none does. */
  choose(needs: TaskNeeds): Promise<RuntimeChoice | null>;
  /**
   * Attacks a runtime, or a station that is started for it: each verdict as it is reached, at last the signed report.
   * Throws `unavailable`.
   */
  attack(subject?: AttackSubject): AsyncIterable<{ verdict: AttackVerdict } | { signed: SignedReport }>;
  /** Tries whether a runtime does what every runtime must: each result, at last the report. Throws `unavailable`. */
  conformance(subject?: SuiteSubject): AsyncIterable<{ result: ConformanceResult } | { report: ConformanceReport }>;
  /** What the machine has and how busy it is, and how many sandboxes and runs there are. At the price of a look. */
  stats(): Promise<MachineStats>;
  /** What takes room in the state folder, by kind, looked at up to a bound. */
  usage(): Promise<MachineUsage>;
  /**
   * Removes what nobody uses: kept sandboxes in which nothing runs any more; sessions that were not used for a while
   * and have nothing unapplied; runs that ended and whose session is gone; snapshots without a name. What somebody uses
   * again meanwhile stays. Resolves with what was removed, or would be.
   */
  prune(request: PruneMachine): Promise<Pruned>;
  /**
   * Everything that the state folder keeps, as one archive, as it is at one moment, whatever goes on: the log first,
   * then files, those of a session in use while nothing moves in its sandboxes. Sandboxes themselves and caches are
   * left out. The iteration throws `no_space`, `unavailable`.
   */
  backup(options?: { compressed?: boolean }): AsyncIterable<Uint8Array>;
  /**
   * Brings a backup back into an empty state folder, of the same path. Nothing is in use before all of it is there.
   * Throws `exists` for a folder that is in use, `conflict` for one of another path, `invalid` for what is no backup.
   */
  restore(file: string): Promise<RestoredBackup>;
  /** What an id, the beginning of one, or a name stands for. Throws `not_found`, `invalid` for several. */
  find(word: string): Promise<NamedThing>;
}
