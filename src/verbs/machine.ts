import { z } from "zod";
import { reachOfDoctor } from "../contract/api/required-scopes.ts";
import { AttackVerdict, SignedReport } from "../contract/machine/attack-report.ts";
import {
  AskSnapshotUsage,
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
  type RestoredBackup,
  RuntimeChoice,
  SnapshotUsages,
  SuiteSubject,
  TaskNeeds,
} from "../contract/machine/machine-verbs.ts";
import { type VerbsOf, verb, verbOfType } from "./verb.ts";

/** The machine that the station runs on. */
export const machine = {
  /**
   * Probes every runtime, or the named ones, by starting a sandbox in it. With `model`, sends that model a short
   * request. Throws `invalid` for an unknown runtime name.
   */
  doctor: verb({
    path: "GET /v1/doctor",
    takes: z.strictObject({
      only: z.array(z.string().min(1).max(32)).max(10).optional(),
      model: z.string().min(1).max(200).optional(),
    }),
    gives: DoctorReport,
    scope: "run",
    owned: "everyone",
    reaches: reachOfDoctor,
    summary: "Check what works on the station's machine by trying it; with `model`, check that this model answers.",
  }),
  /** Returns the runtime that suits a task, and the reason; null if none does. */
  choose: verb({
    path: "POST /v1/machine/choose",
    takes: TaskNeeds,
    bodyOptional: true,
    gives: RuntimeChoice.nullable(),
    key: "choice",
    scope: "run",
    owned: "everyone",
    summary: "Choose the runtime that suits a task, with the reason; null if none does.",
  }),
  /**
   * Lists the models that this machine's keys allow. With `check`, throws `invalid` for a malformed model name and
   * `unauthenticated` for a model whose key is missing. Contacts no provider.
   */
  models: verb({
    path: "GET /v1/machine/models",
    takes: z.strictObject({ check: z.string().min(1).max(200).optional() }),
    gives: ModelList,
    scope: "run",
    owned: "everyone",
    reaches: (body: undefined, { check }: { check?: string | undefined }) => reachOfDoctor(body, { model: check }),
    summary: "List the models that the station's keys allow, and the default. With `check`, reject an unusable model.",
  }),
  /**
   * Attacks a runtime, or a station started for this: yields each verdict as it is reached, then the signed report.
   * Throws `unavailable`.
   */
  attack: verb({
    path: "POST /v1/machine/attack",
    takes: AttackSubject,
    bodyOptional: true,
    gives: z.union([z.object({ verdict: AttackVerdict }), z.object({ signed: SignedReport })]),
    kind: "items",
    scope: "admin",
    owned: "everyone",
    summary: "Attack a runtime, or a station started for this: each verdict as it is reached, then the signed report.",
  }),
  /**
   * Tests whether a runtime behaves as every runtime must: yields each result, then the report. Throws `unavailable`.
   */
  conformance: verb({
    path: "POST /v1/machine/conformance",
    takes: SuiteSubject,
    bodyOptional: true,
    gives: z.union([z.object({ result: ConformanceResult }), z.object({ report: ConformanceReport })]),
    kind: "items",
    scope: "admin",
    owned: "everyone",
    summary: "Test whether a runtime behaves as every runtime must: each result, then the report.",
  }),
  /** Returns the machine's resources and load, and the numbers of sandboxes and runs. Cheap. */
  stats: verb({
    path: "GET /v1/machine/stats",
    gives: MachineStats,
    scope: "read",
    owned: "everyone",
    summary: "Show the resources and load of the station's machine, and the numbers of sandboxes and runs.",
  }),
  /** Returns the disk usage of the state folder by kind, measured up to a limit. */
  usage: verb({
    path: "GET /v1/machine/usage",
    gives: MachineUsage,
    scope: "admin",
    owned: "everyone",
    summary: "Show the disk usage of the station's state folder.",
  }),
  /**
   * Returns the room of each snapshot and each earlier state of a session: what removing it would free, and what it
   * shares with others. Measured up to a limit. Throws `not_found`.
   */
  snapshotUsage: verb({
    path: "GET /v1/machine/usage/snapshots",
    takes: AskSnapshotUsage,
    gives: SnapshotUsages,
    scope: "admin",
    owned: "everyone",
    summary: "Show the disk usage of each snapshot and each earlier state of a session.",
  }),
  /**
   * Removes unused things of these kinds: kept sandboxes without processes, sessions that have not been used for a
   * while and have no unapplied changes, ended runs whose session was removed, unnamed snapshots, and files that
   * nothing uses. Keeps what is used again in the meantime. Resolves with what was removed, or would be.
   */
  prune: verb({
    path: "POST /v1/machine/prune",
    takes: PruneMachine,
    gives: Pruned,
    scope: "admin",
    owned: "admin",
    summary: "Remove unused things, or list what would be removed.",
  }),
  /**
   * Archives everything in the state folder except sandboxes and caches, as one consistent archive: the log first, then
   * files. The files of a session in use are copied while its sandboxes are frozen. The iteration throws `no_space`,
   * `unavailable`.
   */
  backup: verb({
    path: "POST /v1/machine/backup",
    takes: z.strictObject({ compressed: z.boolean().default(false) }),
    bodyOptional: true,
    kind: "bytes",
    media: "application/x-tar",
    scope: "admin",
    owned: "admin",
    summary: "Back up the state folder as an archive for `caisson restore`. The station keeps working meanwhile.",
  }),
  /**
   * Restores a backup into an empty state folder of the same path. Nothing is used before all of it is restored. Throws
   * `exists` for a folder in use, `conflict` for another path, `invalid` for a file that is not a backup.
   */
  restore: verbOfType<(file: string) => Promise<RestoredBackup>>()({
    owned: "admin",
    withoutRoute: "it requires a state folder that no station uses",
  }),
  /** Looks up an id, an id prefix or a name. Throws `not_found`, `invalid` for an ambiguous one. */
  find: verb({
    path: "GET /v1/find",
    takes: z.strictObject({ word: z.string().min(1).max(200) }),
    lead: "word",
    gives: NamedThing,
    scope: "read",
    owned: "by hand",
    summary: "Look up an id, an id prefix or a name.",
  }),
};

export type MachineVerbs = VerbsOf<typeof machine>;
