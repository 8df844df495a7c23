import { defaultLimits } from "../defaults/default-limits.ts";
import type { LimitField, SandboxField, SandboxFieldValues, StartField } from "./sandbox-fields.ts";

/**
 * One half of the sandbox field table: each field's default, and its syntax on a command line and in an agent file.
 * This half needs no schemas, because help and most commands load no schemas. If a field of `sandbox-fields.ts` is
 * missing here, the code does not compile.
 */

/** How to parse a text to the value. `own`: with a separate parser, on the command line and in the agent file. */
export type ReadAs = "switch" | "text" | "list" | "bytes" | "count" | "number" | "duration" | "own";

export interface SandboxOption {
  name: string;
  short?: string;
  /** The placeholder for the value in help; absent for a switch. */
  value?: string;
  repeat?: boolean;
  summary: string;
  /** Values to offer in completion. */
  choices?: readonly string[];
  completes?: readonly ("snapshot" | "template")[];
}

export interface FieldText {
  reads: ReadAs;
  /** The options that set the field. With `own` there may be several. */
  options: readonly SandboxOption[];
  /** Its keys in an agent file: the current name, then older ones. Empty if a file cannot set it. */
  keys: readonly string[];
}

interface FieldDefaults<Value> extends FieldText {
  /** The default of a sandbox; absent: none. */
  unset?: Value;
  /**
   * How a value from a stronger source, such as an option over an agent file, combines with a weaker one: it replaces
   * it (default), or adds its entries to it.
   */
  merge?: "entries";
}

/** The usual size for programs that use shared memory. */
export const SHM_BYTES = 64 * 1024 * 1024;

export const limitFieldOptions = {
  memoryBytes: {
    reads: "bytes",
    keys: ["memory"],
    options: [{ name: "memory", short: "m", value: "SIZE", summary: "Memory for all processes together, such as 512m (default 4g)" }],
  },
  cpus: {
    reads: "number",
    keys: ["cpus", "cpu"],
    options: [{ name: "cpus", value: "N", summary: "Number of CPUs, such as 1.5 (default 2)" }],
  },
  pids: {
    reads: "count",
    keys: ["pids"],
    options: [{ name: "pids", value: "N", summary: "Maximum number of processes and threads (default 1000)" }],
  },
  diskBytes: {
    reads: "bytes",
    keys: ["disk"],
    options: [{ name: "disk", value: "SIZE", summary: "Disk space for writes (default: all but the machine's reserve)" }],
  },
  outputBytes: {
    reads: "bytes",
    keys: [],
    options: [{ name: "output-max", value: "SIZE", summary: "End a command whose output exceeds this" }],
  },
  // Commands have their own --timeout.
  wallClockMs: { reads: "duration", keys: ["timeout"], options: [] },
} as const satisfies Readonly<Record<LimitField, FieldText>>;

export const startFieldOptions = {
  // Each command declares this option with the runtimes it supports.
  runtime: { reads: "text", keys: ["runtime", "mode"], options: [] },
  ociRuntime: {
    reads: "text",
    keys: [],
    options: [
      {
        name: "oci-runtime",
        value: "NAME",
        summary: "Use this OCI runtime: runc, crun, youki, runsc, or a path",
        choices: ["runc", "crun", "youki", "runsc"],
      },
    ],
  },
  image: {
    reads: "own",
    keys: ["image"],
    options: [
      {
        name: "image",
        value: "REF",
        summary: "Start from an image: one built here, a registry reference, an OCI layout, an archive or a root folder",
      },
    ],
  },
  snapshot: {
    reads: "text",
    keys: [],
    options: [{ name: "snapshot", value: "SNAPSHOT", summary: "Start from a snapshot, by id or name", completes: ["snapshot"] }],
  },
  template: {
    reads: "text",
    keys: ["template"],
    options: [
      {
        name: "template",
        value: "NAME",
        summary: "Start from a template, by name or id; see `caisson template ls`",
        completes: ["template"],
      },
    ],
  },
  secretNames: { reads: "own", keys: ["secrets"], options: [], unset: [] },
  // Uses the options of `mounts`.
  mountGuard: { reads: "own", keys: [], options: [] },
} as const satisfies Readonly<Record<StartField, FieldDefaults<unknown>>>;

export const sandboxFieldOptions = {
  mounts: {
    reads: "own",
    keys: [],
    unset: [],
    options: [
      {
        name: "mount",
        value: "DIR[:PATH][:MODE]",
        repeat: true,
        summary: "Mount another folder at PATH (default /mnt/NAME); MODE is ro (default), rw, or overlay: changes stay in the sandbox",
      },
      { name: "hide", value: "PATTERN", repeat: true, summary: "Also hide matching files, such as *.secret or config/prod.yml" },
      {
        name: "show",
        value: "PATTERN",
        repeat: true,
        summary: "Show matching files that would be hidden as credentials; * for all",
      },
      { name: "allow-hooks", summary: "With MODE rw: let the sandbox write git hooks and settings, and shell start-up files" },
    ],
  },
  env: {
    reads: "own",
    keys: ["env", "environment"],
    unset: {},
    merge: "entries",
    options: [
      { name: "env", short: "e", value: "K=V", repeat: true, summary: "Set a variable inside; K alone copies its value from outside" },
    ],
  },
  stationAccess: {
    reads: "switch",
    keys: [],
    unset: false,
    options: [
      { name: "station-access", summary: "Let programs inside report events and upload artifacts to the station (CAISSON_SANDBOX_URL)" },
    ],
  },
  allowRoot: {
    reads: "switch",
    keys: ["allow_root"],
    unset: false,
    options: [{ name: "allow-root", summary: "Let commands become root inside, and use sudo" }],
  },
  limits: {
    reads: "own",
    keys: [],
    unset: {},
    merge: "entries",
    options: Object.values(limitFieldOptions).flatMap(({ options }) => [...options]),
  },
  tmpBytes: {
    reads: "bytes",
    keys: ["tmp"],
    unset: defaultLimits.tmpBytes,
    options: [{ name: "tmp", value: "SIZE", summary: "Size of /tmp, which is held in memory (default 512m)" }],
  },
  shmBytes: {
    reads: "bytes",
    keys: ["shm_size"],
    unset: SHM_BYTES,
    options: [{ name: "shm-size", value: "SIZE", summary: "Size of /dev/shm, which is held in memory (default 64m)" }],
  },
  readOnlyPaths: {
    reads: "list",
    keys: ["read_only_paths"],
    unset: [],
    merge: "entries",
    options: [{ name: "read-only-path", value: "PATH", repeat: true, summary: "Make this path read-only inside" }],
  },
  deniedPaths: {
    reads: "list",
    keys: ["denied_paths"],
    unset: [],
    merge: "entries",
    options: [{ name: "denied-path", value: "PATH", repeat: true, summary: "Hide this path inside" }],
  },
  network: {
    reads: "own",
    keys: ["network"],
    unset: { mode: "none" },
    options: [
      {
        name: "network",
        value: "POLICY",
        repeat: true,
        summary: "Network policy: none (default), open, registries, transparent, or a rule: HOST[:PORT], *.HOST, 'GET HOST/PATH'",
        choices: ["none", "open", "registries"],
      },
    ],
  },
  secrets: {
    reads: "own",
    keys: ["secrets"],
    unset: {},
    merge: "entries",
    options: [
      {
        name: "secret",
        value: "NAME[@HOST[;…]]",
        repeat: true,
        summary:
          "A secret: a placeholder inside, injected into requests to HOST; ;from= ;header= ;methods= ;paths= ;git. NAME alone uses the station's or the config file's",
      },
    ],
  },
  gateway: {
    reads: "own",
    keys: ["gateway"],
    options: [
      {
        name: "gateway",
        value: "WIRES",
        summary: "Offer a model API inside (anthropic, openai or both); your API key stays outside",
      },
      { name: "gateway-models", value: "PATTERNS", summary: "Allow only these models, comma-separated; * matches any characters" },
      { name: "gateway-cost", value: "USD", summary: "Refuse calls after this much was spent" },
      { name: "gateway-tokens", value: "N", summary: "Refuse calls after N tokens" },
    ],
  },
} as const satisfies { readonly [Name in SandboxField]: FieldDefaults<Readonly<SandboxFieldValues[Name]>> };

/** All fields, in the order of help. */
export const fieldOptions: Readonly<Record<SandboxField | StartField, FieldDefaults<unknown>>> = {
  ...startFieldOptions,
  ...sandboxFieldOptions,
};

/** Returns the fields of a sandbox with all defaults. */
export function unsetFields(): Omit<SandboxFieldValues, "gateway"> {
  return Object.fromEntries(
    Object.entries(sandboxFieldOptions).flatMap(([name, declared]) =>
      "unset" in declared ? [[name, structuredClone(declared.unset)]] : [],
    ),
  ) as never;
}

/** Merges the fields from two sources, as `merge` of each field specifies. Undefined values do not count. */
export function mergeFields<Weaker extends object, Stronger extends object>(weaker: Weaker, stronger: Stronger): Weaker & Stronger {
  const merged = { ...weaker } as Record<string, unknown>;
  for (const [name, value] of Object.entries(stronger)) {
    const before = merged[name];
    if (value === undefined) continue;
    const adds = before !== undefined && fieldOptions[name as SandboxField]?.merge === "entries";
    if (adds)
      merged[name] = Array.isArray(value) ? [...new Set([...(before as unknown[]), ...value])] : { ...(before as object), ...value };
    else merged[name] = value;
  }
  return merged as Weaker & Stronger;
}

/** Returns the sandbox fields among the settings of a run or an agent. */
export function sandboxSettings<Settings extends object>(settings: Settings): Pick<Settings, keyof Settings & (SandboxField | StartField)> {
  return Object.fromEntries(Object.entries(settings).filter(([name]) => Object.hasOwn(fieldOptions, name))) as never;
}
