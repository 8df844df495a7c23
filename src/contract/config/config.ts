import { z } from "zod";
import { AgentDefaults } from "../agent/agent-defaults.ts";
import { defaultConfig } from "../defaults/default-config.ts";
import { GuardianConfig } from "../guardian/guardian-config.ts";
import { EnvName, RuntimeName } from "../ids.ts";
import { PriceTable } from "../model/price.ts";
import { ConfiguredSecret, GatewayWire, RegistryName } from "../network/network.ts";
import { LimitsRequest } from "../sandbox/sandbox-fields.ts";
import { HidingRules } from "../workspace/workspace-guard.ts";

const defaults = defaultConfig();
/** The smallest volume. Btrfs needs about 100 MiB for itself. */
const VOLUME_BYTES_MIN = 512 * 1024 ** 2;

const NetworkConfig = z.strictObject({
  /** Certificate files (PEM) to trust for outside servers, in addition to the system's. */
  caFiles: z.array(z.string().min(1)).max(16).default([]),
  /** Hosts in private networks from which owners other than the machine's user may fetch repositories and images. */
  privateFetchHosts: z.array(z.string().min(1).max(253)).max(100).default([]),
  /** Base URLs of package registries to use instead of the public ones. */
  registries: z.partialRecord(RegistryName, z.url()).default({}),
  /** Maximum size of the package cache on disk. */
  mirrorBytesMax: z.int().positive().optional(),
  /** Base URLs of model providers for the gateway, instead of the defaults. */
  gateway: z.partialRecord(GatewayWire, z.url()).default({}),
});

/** Health checks of a station. */
const HealthConfig = z.strictObject({
  /**
   * A subject with running work is unresponsive if it sends no heartbeat for this long. A third of it counts as one
   * miss.
   */
  runningTtlMs: z.int().min(6000).max(3_600_000).default(defaults.health.runningTtlMs),
  /** The same for an idle subject. */
  idleTtlMs: z.int().min(6000).max(3_600_000).default(defaults.health.idleTtlMs),
  /** Whether unresponsive subjects are restarted, or only reported. */
  restart: z.boolean().default(defaults.health.restart),
  /** How long a subject may take to respond or end before it is restarted. */
  graceMs: z.int().min(100).max(600_000).default(defaults.health.graceMs),
  /** Minimum time between two restarts of the same subject. */
  cooldownMs: z.int().min(0).max(3_600_000).default(defaults.health.cooldownMs),
  /** After this many restarts, a person is asked. */
  restartsPerHour: z.int().min(0).max(20).default(defaults.health.restartsPerHour),
});

/** Limits on what a station does at once. Defaults depend on the machine. */
export const StationConfig = z.strictObject({
  /** Maximum number of runs driven at once. Default: 8 per core, if memory allows. */
  runsMax: z.int().min(1).max(10_000).optional(),
  /** Maximum number of runs per owner. Default: three quarters of all. */
  runsPerOwnerMax: z.int().min(1).max(10_000).optional(),
  /** Maximum number of sandboxes, with and without a run. Default: 4 per run. */
  sandboxesMax: z.int().min(1).max(100_000).optional(),
  /** Maximum number of sandboxes per owner; at the limit, only runs may create more. Default: three quarters of all. */
  sandboxesPerOwnerMax: z.int().min(1).max(100_000).optional(),
  /** Memory reserved from sandboxes. Default: a tenth of the machine's, and at least 512 MiB. */
  memoryReserveBytes: z.int().nonnegative().optional(),
  /**
   * How many times the machine's memory the station promises to sandboxes, whose usual limit is 4 GiB each. Default: 4.
   */
  memoryOvercommit: z.number().min(1).max(1000).optional(),
  /** Disk space reserved for the station itself. Default: a twentieth of the disk, from 256 MiB to 10 GiB. */
  diskReserveBytes: z.int().nonnegative().optional(),
  /**
   * Maximum size of one owner's uploads, mirrors, images and snapshots, except for `local`. Default: a quarter of the
   * disk.
   */
  diskBytesPerOwnerMax: z.int().positive().optional(),
  /** Maximum number of unfinished workflows per owner; the same for specs, for ships and for merges. */
  jobsPerOwnerMax: z.int().min(1).max(100_000).default(defaults.station.jobsPerOwnerMax),
  /** Maximum number of waiting runs, in total and per owner. */
  queuedMax: z.int().min(1).max(100_000).default(defaults.station.queuedMax),
  queuedPerOwnerMax: z.int().min(1).max(100_000).default(defaults.station.queuedPerOwnerMax),
});
export type StationConfig = z.infer<typeof StationConfig>;

/** The configuration. Sources by precedence: an option, the environment, the file, our default. */
export const Config = z.strictObject({
  $schema: z.string().optional(),
  runtime: RuntimeName.default(defaults.runtime),
  /** Used if `auto` finds no other runtime on this machine. */
  fallbackRuntime: RuntimeName.refine((name) => name !== "host" && name !== "auto", "auto never falls back to the host").optional(),
  ociRuntime: z.string().min(1).optional(),
  /** The path of CRIU, which stores and restores processes. */
  criu: z.string().startsWith("/").optional(),
  image: z.string().min(1).optional(),
  /** The engine image that replaces the machine's toolchain in the docker runtime. */
  dockerImage: z.string().min(1).optional(),
  /**
   * The size of a btrfs image in the state folder for sandboxes, sessions and points, which makes points snapshots.
   * Needs root. Default: no image.
   */
  volumeBytes: z.int().min(VOLUME_BYTES_MIN).optional(),
  limits: LimitsRequest.default({}),
  models: z
    .strictObject({
      /** Used if neither an option nor the environment names a model. */
      default: z.string().min(1).optional(),
      /** The address of a server that speaks OpenAI's protocol, for `compatible/…`. */
      baseUrl: z.url().optional(),
      prices: PriceTable.default({}),
      /** If a model sends nothing for this long, the call is considered dead and repeated. */
      stallMs: z.int().min(100).max(3_600_000).optional(),
    })
    .prefault({}),
  network: NetworkConfig.prefault({}),
  health: HealthConfig.prefault({}),
  guardian: GuardianConfig.prefault({}),
  /**
   * Which workspace files are hidden inside, in addition to those that look like credentials, and which of those are
   * shown.
   */
  workspace: HidingRules.prefault({}),
  /**
   * Secrets by name, for agents and --secret NAME. A secret's source and destination can be defined only here and on
   * the command line. Each secret is for this machine's user unless it names other owners.
   */
  secrets: z.record(EnvName, ConfiguredSecret).default({}),
  telemetry: z
    .strictObject({
      /** The base address of an OTLP over HTTP receiver for traces. Absent: no tracing. */
      endpoint: z.url().optional(),
      /** Whether programs on the station's machine can read `/metrics` without a token. */
      metricsWithoutToken: z.boolean().default(defaults.telemetry.metricsWithoutToken),
    })
    .prefault({}),
  /** More folders to search for agents, relative to this file. Their rights still need to be trusted. */
  agentFolders: z.array(z.string().min(1)).max(50).default([]),
  station: StationConfig.prefault({}),
  /** Defaults for every agent. */
  agent: AgentDefaults.default({}),
  /** The author of commits that `caisson branch` creates. */
  author: z.strictObject({ name: z.string().min(1), email: z.string().min(1) }).default(defaults.author),
});
export type Config = z.infer<typeof Config>;

const groups = new Set(["limits", "models", "author", "network", "workspace", "health", "guardian", "station", "telemetry"]);
const agentGroups = new Set(["agent", "harness", "doomLoop", "compaction", "guardian", "hooks", "sandbox", "limits", "workspace"]);

/** Returns the names of all settings, such as `limits.pids`. A list or a user-defined table counts as one setting. */
export function leavesOf(config: Record<string, unknown>): string[] {
  const { agent, ...rest } = config;
  const leaves = Object.entries(rest).flatMap(([name, value]) =>
    groups.has(name) && typeof value === "object" && value !== null ? Object.keys(value).map((inner) => `${name}.${inner}`) : [name],
  );
  return [...leaves, ...agentLeaves("agent", agent)];
}

/** Returns the names of agent settings, such as `agent.sandbox.limits.pids`. */
export function agentLeaves(path: string, value: unknown): string[] {
  const isGroup = agentGroups.has(path.slice(path.lastIndexOf(".") + 1));
  if (!isGroup || typeof value !== "object" || value === null) return value === undefined ? [] : [path];
  return Object.entries(value).flatMap(([name, inner]) => agentLeaves(`${path}.${name}`, inner));
}

/** Returns the JSON Schema of the file for editors, which also allows `"$schema"`. */
export function configSchema(): unknown {
  return { title: "Caisson's config.json", ...z.toJSONSchema(Config, { io: "input", target: "draft-2020-12" }) };
}
