import type { DoctorReport, RuntimeChoice, TaskNeeds } from "../../contract/machine-verbs.ts";

/** What can be asked of, and done to, the machine the station runs on. */
export interface MachineVerbs {
  /** Probes every runtime, or those named, by really starting a sandbox in it. Throws `invalid` for an unknown name. */
  doctor(options?: { only?: readonly string[] }): Promise<DoctorReport>;
  /** The runtime that suits a task, and why; null when none does. */
  choose(needs: TaskNeeds): Promise<RuntimeChoice | null>;
}
