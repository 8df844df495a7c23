import { z } from "zod";
import { Capabilities } from "../sandbox/sandbox.ts";

import { storageKindNames } from "./storage-kinds.ts";

/** Arguments and answers of the station's verbs for the machine it runs on. */

export const RuntimeReport = z.object({
  name: z.string(),
  usable: z.boolean(),
  startMs: z.number().nullable(),
  findings: z.array(z.object({ level: z.enum(["ok", "note", "problem"]), text: z.string(), fix: z.string().optional() })),
  capabilities: Capabilities.nullable(),
});
export type RuntimeReport = z.infer<typeof RuntimeReport>;

/** Contains only names of variables, never a value. */
export const ModelReport = z.object({
  providers: z.array(
    z.object({
      name: z.string(),
      /** Variables that can hold the key; any one is enough. */
      keys: z.array(z.string()),
      /** Which of these and the address variable are set. */
      set: z.array(z.string()),
    }),
  ),
  /** The model that runs use by default. */
  default: z.string().nullable(),
  /** The result of a test call to a model, or null. */
  asked: z
    .object({ model: z.string(), answers: z.boolean(), durationMs: z.number(), problem: z.string().optional(), fix: z.string().optional() })
    .nullable(),
});
export type ModelReport = z.infer<typeof ModelReport>;

/** The models that the station has keys for. */
export const ModelList = z.object({
  /** The model of a run if neither the run nor its agent names one. */
  default: z.string().nullable(),
  /** The source of the default: a setting, or the only provider with a key. */
  defaultFrom: z.enum(["setting", "key"]).nullable(),
  providers: z.array(
    z.object({
      name: z.string(),
      /** Variables that can hold its key; any one is enough. */
      keys: z.array(z.string()),
      hasKey: z.boolean(),
      /** Its common models; the provider's other models can be used as well. */
      models: z.array(z.string()),
    }),
  ),
});
export type ModelList = z.infer<typeof ModelList>;

/** What `caisson doctor --json` prints. */
export const DoctorReport = z.object({
  version: z.string(),
  machine: z.object({ kernel: z.string(), architecture: z.string(), user: z.enum(["root", "ordinary"]), cgroups: z.string() }),
  runtimes: z.array(RuntimeReport),
  /** The runtime that `auto` would choose, or null. */
  chosen: z.string().nullable(),
  /** The parts of this machine that the host template shows inside. */
  visible: z.array(z.object({ path: z.string(), what: z.string(), why: z.string() })),
  /** The current folder as a workspace. */
  workspace: z.object({
    folder: z.string(),
    /** Why it is refused unless named explicitly, or null. */
    refused: z.string().nullable(),
    /** Files that would be hidden inside, relative to the folder; empty if it is refused. */
    hidden: z.array(z.string()),
    /** Whether the whole folder was searched. */
    complete: z.boolean(),
  }),
  models: ModelReport,
});
export type DoctorReport = z.infer<typeof DoctorReport>;

/** What a task requires of its runtime. */
export const TaskNeeds = z.strictObject({
  /** `python`, `node`, `go` …: its toolchain is required. */
  language: z.string().max(100).optional(),
  /** It serves a page that a person views while it runs. */
  preview: z.boolean().optional(),
  /** Its data must not leave this machine, and isolation matters more than speed. */
  sensitive: z.boolean().optional(),
  /** It must work without any network, including ours. */
  offline: z.boolean().optional(),
  /** It brings its own image. */
  image: z.boolean().optional(),
});
export type TaskNeeds = z.infer<typeof TaskNeeds>;

export const RuntimeChoice = z.object({
  runtime: z.string(),
  template: z.enum(["host", "image"]),
  /** Why this runtime and not the others, each as a sentence. */
  reasons: z.array(z.string()),
});
export type RuntimeChoice = z.infer<typeof RuntimeChoice>;

/** The subject of a test suite. */
export const SuiteSubject = z.strictObject({
  /** A runtime's name, or `auto`. Absent: the station's default. */
  runtime: z.string().min(1).max(100).optional(),
  /** The image for its sandboxes. */
  image: z.string().min(1).max(1000).optional(),
});
export type SuiteSubject = z.infer<typeof SuiteSubject>;

/** What to attack: sandboxes of a runtime, or a station that is started for the purpose. */
export const AttackSubject = SuiteSubject.extend({ of: z.enum(["sandboxes", "station"]).optional() });
export type AttackSubject = z.infer<typeof AttackSubject>;

const tested = { test: z.string(), durationMs: z.number() };
export const ConformanceResult = z.discriminatedUnion("outcome", [
  z.object({ ...tested, outcome: z.literal("passed") }),
  z.object({ ...tested, outcome: z.literal("skipped"), reason: z.string() }),
  z.object({ ...tested, outcome: z.literal("failed"), error: z.string() }),
]);
export type ConformanceResult = z.infer<typeof ConformanceResult>;

export const ConformanceReport = z.object({
  runtime: z.string(),
  passed: z.int(),
  failed: z.int(),
  skipped: z.int(),
  results: z.array(ConformanceResult),
});
export type ConformanceReport = z.infer<typeof ConformanceReport>;

/** The disk usage of one part of the state folder. `count` only counts things that have ids. */
export const DiskUsage = z.object({
  kind: z.enum([...storageKindNames, "other"]),
  count: z.int().nonnegative(),
  bytes: z.number().nonnegative(),
});
export type DiskUsage = z.infer<typeof DiskUsage>;

export const MachineUsage = z.object({
  stateDir: z.string(),
  /** Largest first. */
  kinds: z.array(DiskUsage),
  bytes: z.number().nonnegative(),
  /** Whether counting stopped early, so that there is more. */
  isMinimum: z.boolean(),
});
export type MachineUsage = z.infer<typeof MachineUsage>;

export const AskSnapshotUsage = z.strictObject({
  /** Only this snapshot, or the points of this session, by id or name. */
  of: z.string().min(1).max(256).optional(),
});
export type AskSnapshotUsage = z.input<typeof AskSnapshotUsage>;

/** The room that a snapshot, or an earlier state of a session, takes. */
export const SnapshotUsage = z.object({
  kind: z.enum(["snapshot", "point"]),
  /** A snapshot's id, or the name of a point within its session. */
  id: z.string(),
  name: z.string().nullable(),
  /** For a point: its session, and the run whose turn began there. */
  session: z.string().nullable(),
  run: z.string().nullable(),
  createdAt: z.iso.datetime().nullable(),
  /** What removing it would free. */
  ownBytes: z.number().nonnegative(),
  /** What it also needs, and others as well. */
  sharedBytes: z.number().nonnegative(),
});
export type SnapshotUsage = z.infer<typeof SnapshotUsage>;

export const SnapshotUsages = z.object({
  /** Snapshots, oldest first, then points by session. */
  usages: z.array(SnapshotUsage),
  /** What all of them take together. */
  bytes: z.number().nonnegative(),
  /** Whether measuring stopped early, so that there is more. */
  isMinimum: z.boolean(),
});
export type SnapshotUsages = z.infer<typeof SnapshotUsages>;

/** The machine's resources and their usage, and the station's share of it. */
export const MachineStats = z.object({
  cpu: z.object({
    cores: z.int().positive(),
    /** Load average over the last 1, 5 and 15 minutes. */
    load: z.tuple([z.number(), z.number(), z.number()]),
  }),
  memory: z.object({ bytes: z.number(), availableBytes: z.number() }),
  /** The disk with the state folder. */
  disk: z.object({ bytes: z.number(), availableBytes: z.number() }),
  sandboxes: z.object({ running: z.int().nonnegative(), paused: z.int().nonnegative(), other: z.int().nonnegative() }),
  /** Ended runs are counted up to a thousand. */
  runs: z.object({ open: z.int().nonnegative(), ended: z.int().nonnegative() }),
  /** This process's pool of ready sandboxes; null if it keeps no pool. */
  pool: z
    .object({
      waiting: z.int().nonnegative(),
      size: z.int().nonnegative(),
      /** How many sandboxes came from the pool since this process started, and how many had to be created. */
      ready: z.int().nonnegative(),
      fresh: z.int().nonnegative(),
    })
    .nullable(),
});
export type MachineStats = z.infer<typeof MachineStats>;

export const PruneMachine = z.strictObject({
  /** Only things that were unused for this long. Expired uploads and artifacts of removed things always count. */
  olderThanMs: z.number().nonnegative(),
  /** Only these kinds. Absent: all but `points`, which people may still want. */
  kinds: z.array(z.enum(storageKindNames)).max(100).optional(),
  /** Only reports what would be removed. */
  dryRun: z.boolean().default(false),
  /** Only these items: the ones that the user agreed to. */
  only: z.array(z.string().max(500)).max(10_000).optional(),
});
export type PruneMachine = z.input<typeof PruneMachine>;

export const NamedThing = z.object({ kind: z.enum(["sandbox", "run", "session", "snapshot"]), id: z.string() });
export type NamedThing = z.infer<typeof NamedThing>;

export const PrunedThing = z.object({
  kind: z.enum([
    ...NamedThing.shape.kind.options,
    ...["image", "template", "skeleton", "mirror", "upload", "artifacts", "points", "build", "packages", "ship", "log"],
  ] as const),
  /** Of files without an id: their place in the state folder. */
  id: z.string(),
  name: z.string().nullable(),
  bytes: z.number().nonnegative(),
  why: z.string(),
});
export type PrunedThing = z.infer<typeof PrunedThing>;

export const Pruned = z.object({ things: z.array(PrunedThing), bytes: z.number().nonnegative(), dryRun: z.boolean() });
export type Pruned = z.infer<typeof Pruned>;

/** When and where a backup was created, and by which version of Caisson. */
export const RestoredBackup = z.object({
  createdAt: z.iso.datetime(),
  host: z.string(),
  version: z.string(),
  /** Whether its parts were checked against their digests, which backups of older versions lack. */
  isVerified: z.boolean(),
});
export type RestoredBackup = z.infer<typeof RestoredBackup>;
