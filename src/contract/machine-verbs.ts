import { z } from "zod";
import { Capabilities } from "./sandbox.ts";

/** Arguments and answers of the station's verbs about the machine it runs on. */

export const RuntimeReport = z.object({
  name: z.string(),
  usable: z.boolean(),
  startMs: z.number().nullable(),
  findings: z.array(z.object({ level: z.enum(["ok", "note", "problem"]), text: z.string(), fix: z.string().optional() })),
  capabilities: Capabilities.nullable(),
});
export type RuntimeReport = z.infer<typeof RuntimeReport>;

/** Names of variables only: no value of one is ever part of it. */
export const ModelReport = z.object({
  providers: z.array(
    z.object({
      name: z.string(),
      /** Any of these would do as its key. */
      keys: z.array(z.string()),
      /** Of these and the one for its address, those that are set. */
      set: z.array(z.string()),
    }),
  ),
  /** What runs use unless another is named. */
  default: z.string().nullable(),
  /** The model that was asked for a word, or null. */
  asked: z
    .object({ model: z.string(), answers: z.boolean(), durationMs: z.number(), problem: z.string().optional(), fix: z.string().optional() })
    .nullable(),
});
export type ModelReport = z.infer<typeof ModelReport>;

/** The models that the station's keys allow. */
export const ModelList = z.object({
  /** What a run uses unless it or its agent names another. */
  default: z.string().nullable(),
  /** Where the default comes from: a setting, or the one provider that has a key. */
  defaultFrom: z.enum(["setting", "key"]).nullable(),
  providers: z.array(
    z.object({
      name: z.string(),
      /** Any of these variables holds its key. */
      keys: z.array(z.string()),
      hasKey: z.boolean(),
      /** Its usual models; any other name of the provider can be used, too. */
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
  /** What `auto` would take, or null. */
  chosen: z.string().nullable(),
  /** What of this machine the host template shows inside. */
  visible: z.array(z.object({ path: z.string(), what: z.string(), why: z.string() })),
  /** Of the current folder, as a workspace. */
  workspace: z.object({
    folder: z.string(),
    /** Why it is not taken unless it is named, or null. */
    refused: z.string().nullable(),
    /** What would be hidden inside, relative to it; empty where it is refused. */
    hidden: z.array(z.string()),
    /** Whether it was looked through to the end. */
    complete: z.boolean(),
  }),
  models: ModelReport,
});
export type DoctorReport = z.infer<typeof DoctorReport>;

/** What a task needs of the place it runs in. */
export const TaskNeeds = z.strictObject({
  /** `python`, `node`, `go` …: its toolchain must be there. */
  language: z.string().max(100).optional(),
  /** It shows a page that somebody looks at while it runs. */
  preview: z.boolean().optional(),
  /** Its data must not leave this machine, and the strongest wall counts more than speed. */
  sensitive: z.boolean().optional(),
  /** It must work without any network, ours included. */
  offline: z.boolean().optional(),
  /** It brings its own image. */
  image: z.boolean().optional(),
});
export type TaskNeeds = z.infer<typeof TaskNeeds>;

export const RuntimeChoice = z.object({
  runtime: z.string(),
  template: z.enum(["host", "image"]),
  /** Why this one, and why not the others, each as a sentence. */
  reasons: z.array(z.string()),
});
export type RuntimeChoice = z.infer<typeof RuntimeChoice>;

/** What a suite is run on. */
export const SuiteSubject = z.strictObject({
  /** A runtime's name, or `auto`. Absent: the station's default. */
  runtime: z.string().min(1).max(100).optional(),
  /** The image that its sandboxes start from. */
  image: z.string().min(1).max(1000).optional(),
});
export type SuiteSubject = z.infer<typeof SuiteSubject>;

/** What is attacked: sandboxes of a runtime, or a station that is started for it. */
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

/** What of the state folder is what: bytes that it takes of the disk. `count` is of things that have ids. */
export const DiskUsage = z.object({
  kind: z.enum(["sandboxes", "snapshots", "sessions", "log", "caches", "other"]),
  count: z.int().nonnegative(),
  bytes: z.number().nonnegative(),
});
export type DiskUsage = z.infer<typeof DiskUsage>;

export const MachineUsage = z.object({
  stateDir: z.string(),
  /** The largest first. */
  kinds: z.array(DiskUsage),
  bytes: z.number().nonnegative(),
  /** There is more: it was not counted to the end. */
  isMinimum: z.boolean(),
});
export type MachineUsage = z.infer<typeof MachineUsage>;

/** What the machine has and how much of it is used, and what the station does with it. */
export const MachineStats = z.object({
  cpu: z.object({
    cores: z.int().positive(),
    /** How many processes wanted to run at once on average, over the last 1, 5 and 15 minutes. */
    load: z.tuple([z.number(), z.number(), z.number()]),
  }),
  memory: z.object({ bytes: z.number(), availableBytes: z.number() }),
  /** Where the state folder is. */
  disk: z.object({ bytes: z.number(), availableBytes: z.number() }),
  sandboxes: z.object({ running: z.int().nonnegative(), paused: z.int().nonnegative(), other: z.int().nonnegative() }),
  /** Those that have ended are counted up to a thousand. */
  runs: z.object({ open: z.int().nonnegative(), ended: z.int().nonnegative() }),
  /** Sandboxes that wait for somebody to ask, of this process; null where none are kept ready. */
  pool: z
    .object({
      waiting: z.int().nonnegative(),
      size: z.int().nonnegative(),
      /** How many were given from it since this process began, and how many had to be made. */
      ready: z.int().nonnegative(),
      fresh: z.int().nonnegative(),
    })
    .nullable(),
});
export type MachineStats = z.infer<typeof MachineStats>;

export const PruneMachine = z.strictObject({
  /** Sessions, runs and snapshots that were not used for this long. */
  olderThanMs: z.number().nonnegative(),
  /** Only says what would go. */
  dryRun: z.boolean().default(false),
  /** Of these alone: those that somebody agreed to. */
  only: z.array(z.string().max(500)).max(10_000).optional(),
});
export type PruneMachine = z.input<typeof PruneMachine>;

export const NamedThing = z.object({ kind: z.enum(["sandbox", "run", "session", "snapshot"]), id: z.string() });
export type NamedThing = z.infer<typeof NamedThing>;

export const PrunedThing = NamedThing.extend({ name: z.string().nullable(), bytes: z.number().nonnegative(), why: z.string() });
export type PrunedThing = z.infer<typeof PrunedThing>;

export const Pruned = z.object({ things: z.array(PrunedThing), bytes: z.number().nonnegative(), dryRun: z.boolean() });
export type Pruned = z.infer<typeof Pruned>;

/** When a backup was made, where, and by which Caisson. */
export const RestoredBackup = z.object({
  createdAt: z.iso.datetime(),
  host: z.string(),
  version: z.string(),
  /** Whether its parts were compared with their digests, which backups of older versions do not have. */
  isVerified: z.boolean(),
});
export type RestoredBackup = z.infer<typeof RestoredBackup>;
