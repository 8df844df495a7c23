import { z } from "zod";
import { defaultConfig } from "./default-config.ts";
import { GuardianConfig } from "./guardian-config.ts";
import { EnvName, RuntimeName } from "./ids.ts";
import { ConfiguredSecret, GatewayWire, RegistryName } from "./network.ts";
import { PriceTable } from "./price.ts";
import { LimitsRequest } from "./sandbox.ts";
import { HidingRules } from "./workspace-guard.ts";

const defaults = defaultConfig();

const NetworkConfig = z.strictObject({
  /** Files with certificates (PEM) that servers outside are trusted by, besides the system's. */
  caFiles: z.array(z.string().min(1)).max(16).default([]),
  /**
   * Hosts in private networks from which repositories and images are fetched for owners other than the machine's user.
   */
  privateFetchHosts: z.array(z.string().min(1).max(253)).max(100).default([]),
  /** Base URLs of package registries in place of the public ones. */
  registries: z.partialRecord(RegistryName, z.url()).default({}),
  /** What the cache of packages may take on disk. */
  mirrorBytesMax: z.int().positive().optional(),
  /** Base URLs of model providers for the gateway, in place of their own. */
  gateway: z.partialRecord(GatewayWire, z.url()).default({}),
});

/** How a station judges what gives no sign of life. */
const HealthConfig = z.strictObject({
  /** Without a sign for this long, one that works is unresponsive. A third of it is one miss. */
  runningTtlMs: z.int().min(6000).max(3_600_000).default(defaults.health.runningTtlMs),
  /** The same for one in which nothing runs. */
  idleTtlMs: z.int().min(6000).max(3_600_000).default(defaults.health.idleTtlMs),
  /** Whether it is restarted then; otherwise it is only told. */
  restart: z.boolean().default(defaults.health.restart),
  /** How long one that is to be restarted has to answer, or to end by itself. */
  graceMs: z.int().min(100).max(600_000).default(defaults.health.graceMs),
  /** Between two restarts of the same. */
  cooldownMs: z.int().min(0).max(3_600_000).default(defaults.health.cooldownMs),
  /** After so many a person is asked. */
  restartsPerHour: z.int().min(0).max(20).default(defaults.health.restartsPerHour),
});

/** What a station may do at once; what is absent suits the machine. */
export const StationConfig = z.strictObject({
  /** Runs that are driven at once. Default: 8 for each core, as far as there is memory for them. */
  runsMax: z.int().min(1).max(10_000).optional(),
  /** Of one owner. Default: three quarters of all. */
  runsPerOwnerMax: z.int().min(1).max(10_000).optional(),
  /** Sandboxes at once, of runs and others. Default: 4 for each run. */
  sandboxesMax: z.int().min(1).max(100_000).optional(),
  /** Of one owner, who then makes no more without a run. Default: three quarters of all. */
  sandboxesPerOwnerMax: z.int().min(1).max(100_000).optional(),
  /** Memory that is not given to sandboxes. Default: a tenth of the machine's, and at least 512 MiB. */
  memoryReserveBytes: z.int().nonnegative().optional(),
  /** How many times its memory a station promises to sandboxes, whose usual limit is 4 GiB each. Default: 4. */
  memoryOvercommit: z.number().min(1).max(1000).optional(),
  /** What stays free on the disk for the station itself. Default: a twentieth of it, from 256 MiB to 10 GiB. */
  diskReserveBytes: z.int().nonnegative().optional(),
  /** Uploads, mirrors, images and snapshots of one owner other than `local`. Default: a quarter of the disk. */
  diskBytesPerOwnerMax: z.int().positive().optional(),
  /** Workflows of one owner that are not over; the same for specs, for ships and for merges. */
  jobsPerOwnerMax: z.int().min(1).max(100_000).default(defaults.station.jobsPerOwnerMax),
  /** Runs that may wait, of all owners and of one. */
  queuedMax: z.int().min(1).max(100_000).default(defaults.station.queuedMax),
  queuedPerOwnerMax: z.int().min(1).max(100_000).default(defaults.station.queuedPerOwnerMax),
});
export type StationConfig = z.infer<typeof StationConfig>;

/** Where each setting comes from, the stronger first: an option, the environment, the file, our default. */
export const Config = z.strictObject({
  $schema: z.string().optional(),
  runtime: RuntimeName.default(defaults.runtime),
  /** Tried when `auto` finds nothing on this machine. */
  fallbackRuntime: RuntimeName.refine((name) => name !== "host" && name !== "auto", "auto never falls back to the host").optional(),
  ociRuntime: z.string().min(1).optional(),
  image: z.string().min(1).optional(),
  /** The engine's image that stands in for the machine's own toolchain with the docker runtime. */
  dockerImage: z.string().min(1).optional(),
  limits: LimitsRequest.default({}),
  models: z
    .strictObject({
      /** Used when neither an option nor the environment names one. */
      default: z.string().min(1).optional(),
      /** Of a server that speaks OpenAI's protocol, for `compatible/…`. */
      baseUrl: z.url().optional(),
      prices: PriceTable.default({}),
      /** A model that sends nothing for this long is taken for dead, and asked again. */
      stallMs: z.int().min(100).max(3_600_000).optional(),
    })
    .prefault({}),
  network: NetworkConfig.prefault({}),
  health: HealthConfig.prefault({}),
  guardian: GuardianConfig.prefault({}),
  /**
   * Which files of a workspace are hidden inside, besides those that look like credentials, and which of those are
   * shown.
   */
  workspace: HidingRules.prefault({}),
  /**
   * Secrets by name, which agents and --secret NAME may use: the only place, besides the command line, that says where
   * one comes from and where it goes. Each is for the user of this machine unless it names its owners.
   */
  secrets: z.record(EnvName, ConfiguredSecret).default({}),
  telemetry: z
    .strictObject({
      /** Where traces go: the base address of a receiver of OpenTelemetry's protocol over HTTP. Absent: nowhere. */
      endpoint: z.url().optional(),
      /** Whether programs on the station's machine read `/metrics` without a token. */
      metricsWithoutToken: z.boolean().default(defaults.telemetry.metricsWithoutToken),
    })
    .prefault({}),
  /** More places to look for agents, relative to this file. What they ask for still has to be trusted. */
  agentFolders: z.array(z.string().min(1)).max(50).default([]),
  station: StationConfig.prefault({}),
  /** Of commits that `caisson branch` makes. */
  author: z.strictObject({ name: z.string().min(1), email: z.string().min(1) }).default(defaults.author),
});
export type Config = z.infer<typeof Config>;

/** Settings as `limits.pids`; what is a list or a table of the user's own is one setting. */
export function leavesOf(config: Record<string, unknown>): string[] {
  const groups = new Set(["limits", "models", "author", "network", "workspace", "health", "guardian", "station", "telemetry"]);
  return Object.entries(config).flatMap(([name, value]) =>
    groups.has(name) && typeof value === "object" && value !== null ? Object.keys(value).map((inner) => `${name}.${inner}`) : [name],
  );
}

/** Of the file, for editors: `"$schema"` in it is allowed for them. */
export function configSchema(): unknown {
  return { title: "Caisson's config.json", ...z.toJSONSchema(Config, { io: "input", target: "draft-2020-12" }) };
}
