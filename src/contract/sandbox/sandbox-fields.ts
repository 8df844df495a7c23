import { z } from "zod";
import { ENV_CHARACTERS_MAX, PATH_CHARACTERS_MAX, PathText, recordOf, SECRETS_MAX } from "../bounded.ts";
import { EnvName, SnapshotId, TemplateWord } from "../ids.ts";
import { ImageText } from "../image/image-text.ts";
import { GatewayConfig, NetworkPolicy, SecretConfig } from "../network/network.ts";
import { FolderOrigin, UploadId } from "../upload/upload.ts";
import { visible } from "../visible-text.ts";
import { FolderGuard } from "../workspace/workspace-guard.ts";
import {
  type Reach,
  reachOfImage,
  reachOfMounts,
  reachOfPolicy,
  reachOfProgram,
  reachOfRuntime,
  reachOfSecrets,
  staysInside,
} from "./field-reach.ts";
import {
  aboveLimit,
  judgeSettings,
  narrows,
  onlyByOption,
  type RightJudge,
  type RightJudges,
  rightOfGateway,
  rightOfImage,
  rightOfPolicy,
  rightOfSecrets,
} from "./field-rights.ts";
import { fieldOptions, SHM_BYTES, type sandboxFieldOptions } from "./sandbox-field-options.ts";

/**
 * The fields of a sandbox, each declared once. The sandbox configuration, the agent definition, the run settings, the
 * token checks and the rights of agent files all derive from these tables. `sandbox-field-options.ts` has the other
 * half, which the command line reads without schemas: defaults, options and the keys of an agent file.
 */

const MIB = 1024 * 1024;

/** A path inside a sandbox: absolute, no NUL, no `..`, at most 4,095 bytes. */
export const SandboxPath = z
  .string()
  .max(4095)
  .refine((path) => path.startsWith("/"), "must be absolute")
  .refine((path) => !path.includes("\0"), "must not contain NUL")
  .refine((path) => !path.split("/").includes(".."), "must not contain ..")
  .refine((path) => Buffer.byteLength(path) <= 4095, "must be at most 4,095 bytes");
export type SandboxPath = z.infer<typeof SandboxPath>;

export const WorkspaceAccess = z.enum(["overlay", "rw", "ro"]);
export type WorkspaceAccess = z.infer<typeof WorkspaceAccess>;

/** A folder of the host in addition to the workspace. */
export const FolderMount = z.strictObject({
  path: PathText,
  /** The path inside. A path that the sandbox uses itself, including the workspace, is rejected with `invalid`. */
  target: SandboxPath,
  /** `overlay`: changes are removed with the sandbox. */
  access: WorkspaceAccess.default("ro"),
});
export type FolderMount = z.infer<typeof FolderMount>;

/** An uploaded folder as a sandbox's workspace. Changes are not sent back automatically. */
export const UploadedWorkspace = z.strictObject({
  upload: UploadId,
  access: z.enum(["overlay", "ro"]).default("overlay"),
  origin: FolderOrigin,
});
export type UploadedWorkspace = z.infer<typeof UploadedWorkspace>;

export const UploadedMount = z.strictObject({ upload: UploadId, target: SandboxPath, access: z.enum(["overlay", "ro"]).default("ro") });
export type UploadedMount = z.infer<typeof UploadedMount>;
export const MOUNTS_MAX = 16;
const PATHS_MAX = 1024;
const VARIABLES_MAX = 1000;

interface Limit<Schema extends z.ZodType<number>> {
  schema: Schema;
  right: RightJudge<number>;
}
const limit = <Schema extends z.ZodType<number>>(declared: Limit<Schema>): Limit<Schema> => declared;

/** The limits of a sandbox. None of them affects the station's machine. */
export const limitFields = {
  cpus: limit({ schema: z.number().positive().max(1024), right: aboveLimit("cpus", "processors") }),
  memoryBytes: limit({ schema: z.int().min(4 * MIB), right: aboveLimit("memoryBytes", "bytes of memory") }),
  pids: limit({ schema: z.int().min(1).max(4_000_000), right: aboveLimit("pids", "processes") }),
  diskBytes: limit({ schema: z.int().min(MIB), right: aboveLimit("diskBytes", "bytes on disk") }),
  /** Maximum duration of one command, unless its own timeout is shorter. */
  wallClockMs: limit({ schema: z.int().positive(), right: aboveLimit("wallClockMs", "milliseconds for one command") }),
  /** Maximum output of one command before it is killed. */
  outputBytes: limit({ schema: z.int().positive(), right: aboveLimit("outputBytes", "bytes of output of one command") }),
};
export type LimitField = keyof typeof limitFields;

/**
 * The requested limits by name. Unknown names are rejected, since a misspelled limit would have no effect. An absent
 * limit gets the default if the runtime can enforce it; a present one that cannot be enforced is rejected with
 * `unsupported`.
 */
export const LimitsRequest = z.strictObject(mapFields(limitFields, ({ schema }) => schema.optional()) as Optional<typeof limitFields>);
export type LimitsRequest = z.infer<typeof LimitsRequest>;
const limitRights = mapFields(limitFields, ({ right }) => right) as RightJudges<LimitsRequest>;

interface Field<Schema extends z.ZodType> {
  schema: Schema;
  /** What a value names on the station's machine, which only `admin` tokens may use. */
  reach: Reach<z.output<Schema>>;
  /** The rights that a value in an agent file needs beyond those of any file. */
  right: RightJudge<z.output<Schema>>;
}
const field = <Schema extends z.ZodType>(declared: Field<Schema>): Field<Schema> => declared;

/** The fields of a sandbox, set by its caller, an agent or the settings of a run. */
export const sandboxFields = {
  limits: field({ schema: LimitsRequest, reach: staysInside, right: judgeSettings<LimitsRequest>(limitRights) }),
  /** Whether `user: "root"` and `sudo` work inside. */
  allowRoot: field({
    schema: z.boolean(),
    reach: staysInside,
    right: (allowed) => (allowed ? [{ text: "be root inside the sandbox" }] : []),
  }),
  /** Set for every command; a command's own variables take precedence. */
  env: field({
    schema: recordOf(
      EnvName,
      z
        .string()
        .max(ENV_CHARACTERS_MAX)
        .refine((value) => !value.includes("\0"), "must not contain NUL"),
      VARIABLES_MAX,
    ),
    reach: staysInside,
    right: (variables) => Object.entries(variables).map(([name, value]) => ({ text: `set the variable ${name}=${visible(value)}` })),
  }),
  network: field({ schema: NetworkPolicy, reach: reachOfPolicy, right: rightOfPolicy }),
  /** Secrets by the name of the variable that holds the placeholder inside. */
  secrets: field({ schema: recordOf(EnvName, SecretConfig, SECRETS_MAX), reach: reachOfSecrets, right: rightOfSecrets }),
  gateway: field({ schema: GatewayConfig, reach: staysInside, right: rightOfGateway }),
  /**
   * Whether programs inside can reach the station with the sandbox's own token: to report events, receive messages,
   * send heartbeats and store files, and nothing else.
   */
  stationAccess: field({
    schema: z.boolean(),
    reach: staysInside,
    right: (allowed) => (allowed ? [{ text: "talk to the station from inside", never: onlyByOption("--station-access") }] : []),
  }),
  mounts: field({
    schema: z.array(FolderMount).max(MOUNTS_MAX),
    reach: reachOfMounts,
    right: (mounts) =>
      mounts.map(({ path, target, access }) => ({
        text: `have the folder ${visible(path)} at ${visible(target)} (${access})`,
        never: onlyByOption("--mount"),
      })),
  }),
  /** Paths that are read-only inside. */
  readOnlyPaths: field({ schema: z.array(SandboxPath).max(PATHS_MAX), reach: staysInside, right: narrows }),
  /** Paths that are hidden inside. */
  deniedPaths: field({ schema: z.array(SandboxPath).max(PATHS_MAX), reach: staysInside, right: narrows }),
  tmpBytes: field({ schema: z.int().min(MIB), reach: staysInside, right: aboveLimit("tmpBytes", "bytes of /tmp") }),
  shmBytes: field({ schema: z.int().min(MIB), reach: staysInside, right: aboveLimit("shmBytes", "bytes of /dev/shm", SHM_BYTES) }),
};
export type SandboxField = keyof typeof sandboxFields;
export const sandboxFieldNames = Object.keys(sandboxFields) as readonly SandboxField[];

/**
 * Fields that an agent or the settings of a run choose, and that the station resolves to a runtime, a template and
 * secrets.
 */
export const startFields = {
  runtime: field({
    schema: z.string().max(100),
    reach: reachOfRuntime,
    right: (runtime) => (runtime === "auto" ? [] : [{ text: `use the runtime ${visible(runtime)}` }]),
  }),
  /** With the runtime `oci`: the OCI runtime, by name or path. */
  ociRuntime: field({
    schema: z.string().max(PATH_CHARACTERS_MAX),
    reach: reachOfProgram,
    right: (name) => [{ text: `use the OCI runtime ${visible(name)}`, never: onlyByOption("--oci-runtime") }],
  }),
  image: field({ schema: ImageText, reach: reachOfImage, right: rightOfImage }),
  snapshot: field({
    schema: SnapshotId,
    reach: staysInside,
    right: (id) => [{ text: `start from the snapshot ${visible(id)}`, never: onlyByOption("--snapshot") }],
  }),
  template: field({
    schema: TemplateWord,
    reach: staysInside,
    right: (template) => [{ text: `start from the template or image ${visible(template)}` }],
  }),
  /** Secrets that the station stores or its configuration defines; resolving a name checks the owner. */
  secretNames: field({
    schema: z.array(EnvName).max(100),
    reach: staysInside,
    right: (names) => names.map((name) => ({ text: `use your secret ${name}, as your configuration defines it`, field: name })),
  }),
  /** How to show the mounts; without mounts it has no effect. Absent: nothing is hidden. */
  mountGuard: field({ schema: FolderGuard, reach: staysInside, right: narrows }),
};
export type StartField = keyof typeof startFields;

type Fields = Readonly<Record<string, { schema: z.ZodType }>>;
type Optional<Table extends Fields> = { [Name in keyof Table]: z.ZodOptional<Table[Name]["schema"]> };
type Defaulted<Table extends Fields> = { [Name in keyof Table]: z.ZodDefault<Table[Name]["schema"]> };
/** The type of each field's value. */
export type FieldValues<Table extends Fields> = { [Name in keyof Table]: z.output<Table[Name]["schema"]> };
export type SandboxFieldValues = FieldValues<typeof sandboxFields>;

const settingFields = { ...startFields, ...sandboxFields };
type SettingField = keyof typeof settingFields;

/**
 * Returns the shape of the sandbox part of an agent or run: every field is optional, except those in `always`, which
 * default to their empty form.
 */
export function settingsShape<Always extends SettingField>(
  always: readonly Always[],
): Optional<Omit<typeof settingFields, Always>> & Defaulted<Pick<typeof settingFields, Always>> {
  const names: readonly string[] = always;
  return mapFields(settingFields, ({ schema }, name) =>
    names.includes(name) ? (schema as z.ZodType<unknown>).default(unsetOf(name)) : schema.optional(),
  ) as never;
}

type Unset = { [Name in SandboxField]: (typeof sandboxFieldOptions)[Name] extends { unset: unknown } ? Name : never }[SandboxField];
type SandboxTable = typeof sandboxFields;

/** Returns the shape of the fields in a sandbox configuration: an unset field gets its default, if it has one. */
export function configShape(): Defaulted<Pick<SandboxTable, Unset>> & Optional<Omit<SandboxTable, Unset>> {
  return mapFields(sandboxFields, ({ schema }, name) =>
    unsetOf(name) === undefined ? schema.optional() : (schema as z.ZodType<unknown>).default(unsetOf(name)),
  ) as never;
}

/** Returns only the fields that a sandbox configuration has. */
export function configFields<Settings extends object>(settings: Settings): Pick<Settings, keyof Settings & SandboxField> {
  return Object.fromEntries(Object.entries(settings).filter(([name]) => Object.hasOwn(sandboxFields, name))) as never;
}

export const reachOfFields = mapFields(settingFields, ({ reach }) => reach) as {
  [Name in SettingField]: (typeof settingFields)[Name]["reach"];
};
export const rightsOfFields = mapFields(settingFields, ({ right }) => right) as {
  [Name in SettingField]: (typeof settingFields)[Name]["right"];
};

function unsetOf(name: string): unknown {
  return fieldOptions[name as SettingField]?.unset;
}

function mapFields<Table extends object, Result>(table: Table, change: (field: Table[keyof Table], name: string) => Result) {
  return Object.fromEntries(Object.entries(table).map(([name, each]) => [name, change(each, name)]));
}
