import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { PriceTable } from "../agent/model/prices.ts";
import { CaissonError } from "../contract/error.ts";
import { EnvName, RuntimeName } from "../contract/ids.ts";
import { GatewayWire, RegistryName, SecretSpec } from "../contract/network.ts";
import { LimitsRequest } from "../contract/sandbox.ts";
import { absoluteSecrets } from "../network/absolute-secrets.ts";

const NetworkConfig = z.strictObject({
  /** Files with certificates (PEM) that servers outside are trusted by, besides the system's. */
  caFiles: z.array(z.string().min(1)).max(16).default([]),
  /** Base URLs of package registries in place of the public ones. */
  registries: z.partialRecord(RegistryName, z.url()).default({}),
  /** What the cache of packages may take on disk. */
  mirrorBytesMax: z.int().positive().optional(),
  /** Base URLs of model providers for the gateway, in place of their own. */
  gateway: z.partialRecord(GatewayWire, z.url()).default({}),
});

/** Where each setting comes from, the stronger first: an option, the environment, the file, our default. */
export const Config = z.strictObject({
  $schema: z.string().optional(),
  runtime: RuntimeName.default("auto"),
  /** Tried when `auto` finds nothing on this machine. */
  fallbackRuntime: RuntimeName.refine((name) => name !== "host" && name !== "auto", "auto never ends on the host").optional(),
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
  /** Secrets by name, which agents and --secret NAME may use: the only place, besides the command line, that says where one comes from and where it goes. */
  secrets: z.record(EnvName, SecretSpec).default({}),
  /** More places to look for agents, relative to this file. What they ask for still has to be trusted. */
  agentFolders: z.array(z.string().min(1)).max(50).default([]),
  /** Of commits that `caisson branch` makes. */
  author: z.strictObject({ name: z.string().min(1), email: z.string().min(1) }).default({ name: "Caisson", email: "caisson@localhost" }),
});
export type Config = z.infer<typeof Config>;

/** A setting's variable in the environment. */
export const configVariables = {
  runtime: "CAISSON_RUNTIME",
  fallbackRuntime: "CAISSON_FALLBACK_RUNTIME",
  ociRuntime: "CAISSON_OCI_RUNTIME",
  image: "CAISSON_IMAGE",
  dockerImage: "CAISSON_DOCKER_IMAGE",
} as const satisfies Partial<Record<keyof Config, string>>;

export const modelVariable = "CAISSON_MODEL";

/** Where a setting's value comes from: the name of an option or a variable, the path of a file, or `default`. */
export type ConfigSources = Readonly<Record<string, string>>;

const CONFIG_BYTES_MAX = 1024 * 1024;

/** Throws `invalid`, naming the file or variable that is wrong. */
export async function loadConfig(options: {
  stateDir: string;
  configDir: string;
  variable: (name: string) => string | undefined;
}): Promise<{ config: Config; file: string | null; sources: ConfigSources }> {
  const read =
    (await readConfigFile(join(options.stateDir, "config.json"))) ?? (await readConfigFile(join(options.configDir, "config.json")));
  const raw = { ...read?.content };
  const sources: Record<string, string> = read === null ? {} : Object.fromEntries(leavesOf(raw).map((name) => [name, read.file]));
  for (const [setting, name] of Object.entries(configVariables)) {
    const value = options.variable(name);
    if (value === undefined || value === "") continue;
    raw[setting] = value;
    sources[setting] = name;
  }
  const model = options.variable(modelVariable);
  if (model !== undefined && model !== "") {
    raw.models = { ...(raw.models as object | undefined), default: model };
    sources["models.default"] = modelVariable;
  }
  const parsed = Config.safeParse(raw);
  if (parsed.success) {
    const secrets = absoluteSecrets(parsed.data.secrets, read === null ? options.configDir : dirname(read.file));
    return { config: { ...parsed.data, secrets }, file: read?.file ?? null, sources };
  }
  throw new CaissonError("invalid", `the configuration is not valid: ${z.prettifyError(parsed.error).replaceAll("\n", " ")}`, {
    hint: read === null ? "Look at the CAISSON_… variables." : `Look at ${read.file} and the CAISSON_… variables.`,
  });
}

/** Settings as `limits.pids`; what is a list or a table of the user's own is one setting. */
export function leavesOf(config: Record<string, unknown>): string[] {
  const groups = new Set(["limits", "models", "author", "network"]);
  return Object.entries(config).flatMap(([name, value]) =>
    groups.has(name) && typeof value === "object" && value !== null ? Object.keys(value).map((inner) => `${name}.${inner}`) : [name],
  );
}

/** Of the file, for editors: `"$schema"` in it is allowed for them. */
export function configSchema(): unknown {
  return { title: "Caisson's config.json", ...z.toJSONSchema(Config, { io: "input", target: "draft-2020-12" }) };
}

async function readConfigFile(file: string): Promise<{ file: string; content: Record<string, unknown> } | null> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw new CaissonError("invalid", `the configuration ${file} cannot be read`, { cause: error });
  }
  try {
    const content: unknown = text.length > CONFIG_BYTES_MAX ? null : JSON.parse(text);
    if (typeof content === "object" && content !== null && !Array.isArray(content))
      return { file, content: content as Record<string, unknown> };
  } catch {
    // Falls through: not JSON is the same mistake as JSON that is no object.
  }
  throw new CaissonError("invalid", `the configuration ${file} is not a JSON object`, { hint: `Mend or remove ${file}.` });
}
