import { z } from "zod";
import { PATH_CHARACTERS_MAX } from "../bounded.ts";
import { EnvName } from "../ids.ts";
import { LOCAL_OWNER, Owner } from "../token/owner.ts";

const LABEL = "[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?";
const hostName = new RegExp(`^${LABEL}(\\.${LABEL})*$`);

/**
 * The hosts that a rule matches: a name (`example.com`), every name below one (`*.example.com`, but not `example.com`
 * itself), an address, or `*` for all. Names are case-insensitive, and a final dot is dropped.
 */
export const HostPattern = z
  .string()
  .min(1)
  .max(255)
  .transform((text) =>
    text
      .toLowerCase()
      .replace(/\.$/, "")
      .replace(/^\[(.*)\]$/, "$1"),
  )
  .refine((text) => text === "*" || isIPv6(text) || hostName.test(text.replace(/^\*\./, "")), {
    error: "is not a host: write example.com, *.example.com, an address, or *",
  });
export type HostPattern = z.infer<typeof HostPattern>;

/** Avoids Node's own function, which a browser form does not have. IPv4 addresses match the pattern for names. */
function isIPv6(text: string): boolean {
  return text.includes(":") && z.ipv6().safeParse(text).success;
}

export const Port = z.int().min(1).max(65_535);
const Method = z.string().regex(/^[A-Z]{1,20}$/, "must be in capitals, such as GET");
const PathPrefix = z.string().startsWith("/").max(2048);

/**
 * A destination that a sandbox may reach. `methods` and `paths` require inspecting requests, so HTTPS to that host is
 * decrypted with the sandbox's own authority.
 */
export const NetworkRule = z.lazy(() =>
  z.strictObject({
    host: HostPattern,
    ports: z.array(Port).min(1).max(64).default([80, 443]),
    methods: z.array(Method).min(1).max(20).optional(),
    /** Prefixes of complete segments: `/api` matches `/api` and `/api/x`, but not `/apix`. */
    paths: z.array(PathPrefix).min(1).max(64).optional(),
    /**
     * Whether the name may resolve to a private or loopback address or to the host itself. Link-local and metadata
     * addresses are never reachable.
     */
    private: z.boolean().default(false),
  }),
);
export type NetworkRule = z.infer<typeof NetworkRule>;

export const RegistryName = z.enum(["npm", "pypi", "debian", "crates", "go"]);
export type RegistryName = z.infer<typeof RegistryName>;

/** `transparent`: also serves programs without proxy support. */
const transparent = z.boolean().default(false);
export const NetworkPolicy = z.lazy(() =>
  z.discriminatedUnion("mode", [
    z.strictObject({ mode: z.literal("none") }),
    z.strictObject({
      mode: z.literal("allow"),
      rules: z.array(NetworkRule).max(1000).default([]),
      /** Package registries, through the host's cache. */
      registries: z.array(RegistryName).max(20).default([]),
      transparent,
    }),
    /** Every public address. Private ones need a rule. */
    z.strictObject({
      mode: z.literal("open"),
      rules: z.array(NetworkRule).max(1000).default([]),
      registries: z.array(RegistryName).max(20).default([]),
      transparent,
    }),
  ]),
);
export type NetworkPolicy = z.infer<typeof NetworkPolicy>;

/** The source of a secret's value on the host. `env` alone means the variable with the secret's own name. */
export const SecretSource = z.lazy(() =>
  z.union([
    z.literal("env"),
    z.strictObject({ env: EnvName }),
    z.strictObject({ file: z.string().min(1).max(4096) }),
    z.strictObject({ command: z.array(z.string().max(PATH_CHARACTERS_MAX)).min(1).max(64) }),
  ]),
);
export type SecretSource = z.infer<typeof SecretSource>;

/** Where a secret's value may be sent. */
export const secretScope = () => ({
  hosts: z.array(HostPattern).min(1).max(64),
  ports: z.array(Port).min(1).max(64).default([443]),
  /** The only header in which the placeholder is replaced; absent: any header. */
  header: z
    .string()
    .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/, "is not a header name")
    .transform((name) => name.toLowerCase())
    .optional(),
  methods: z.array(Method).min(1).max(20).optional(),
  paths: z.array(PathPrefix).min(1).max(64).optional(),
  /** git uses the secret automatically for these hosts, as the password of this user. */
  git: z.strictObject({ username: z.string().min(1).max(128).default("x-access-token") }).optional(),
});

/**
 * A secret that stays outside. Inside, a variable of its name contains a placeholder; the value is inserted in requests
 * to the named hosts, over verified TLS only.
 */
export const SecretConfig = z.lazy(() => z.strictObject({ from: SecretSource.default("env"), ...secretScope() }));
export type SecretConfig = z.infer<typeof SecretConfig>;

/** A configured secret, with the owners that may use it; `*` for all. */
export const ConfiguredSecret = z.lazy(() =>
  z.strictObject({
    from: SecretSource.default("env"),
    ...secretScope(),
    owners: z.union([z.literal("*"), z.array(Owner).min(1).max(1000)]).default([LOCAL_OWNER]),
  }),
);
export type ConfiguredSecret = z.infer<typeof ConfiguredSecret>;

/** Returns the configured secrets that an owner may use. */
export function secretsForOwner(secrets: Readonly<Record<string, ConfiguredSecret>>, owner: Owner): Record<string, SecretConfig> {
  const usable = Object.entries(secrets).filter(([, { owners }]) => owners === "*" || owners.includes(owner));
  return Object.fromEntries(usable.map(([name, { owners: _, ...secret }]) => [name, secret]));
}

export const GatewayWire = z.enum(["anthropic", "openai"]);
export type GatewayWire = z.infer<typeof GatewayWire>;

/** Model access for programs inside without a key: the host has the key, and counts and records calls. */
export const GatewayConfig = z.lazy(() =>
  z.strictObject({
    wires: z.array(GatewayWire).min(1).max(10).default(["anthropic", "openai"]),
    /** Patterns of the allowed models, with `*` for any characters; absent: all. */
    models: z.array(z.string().min(1).max(200)).min(1).max(100).optional(),
    /** Calls are denied once this sandbox has spent this much, or used this many tokens. */
    costUsdMax: z.number().positive().optional(),
    tokensMax: z.int().positive().optional(),
  }),
);
export type GatewayConfig = z.infer<typeof GatewayConfig>;
