import { z } from "zod";
import { PATH_CHARACTERS_MAX } from "./bounded.ts";
import { EnvName } from "./ids.ts";
import { LOCAL_OWNER, Owner } from "./owner.ts";

const LABEL = "[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?";
const hostName = new RegExp(`^${LABEL}(\\.${LABEL})*$`);

/**
 * Which hosts a rule is for: a name (`example.com`), every name below one (`*.example.com`, which is not `example.com`
 * itself), an address, or `*` for all. Names are compared without regard to case; a final dot is dropped.
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

/** Without Node's own, which a form in a browser does not have. An IPv4 address is a name in this respect. */
function isIPv6(text: string): boolean {
  return text.includes(":") && z.ipv6().safeParse(text).success;
}

export const Port = z.int().min(1).max(65_535);
const Method = z.string().regex(/^[A-Z]{1,20}$/, "a method is written in capitals, such as GET");
const PathPrefix = z.string().startsWith("/").max(2048);

/**
 * One thing a sandbox may reach. `methods` and `paths` need to see the request, so HTTPS to that host is opened by the
 * sandbox's own authority.
 */
export const NetworkRule = z.lazy(() =>
  z.strictObject({
    host: HostPattern,
    ports: z.array(Port).min(1).max(64).default([80, 443]),
    methods: z.array(Method).min(1).max(20).optional(),
    /** Prefixes of whole segments: `/api` is for `/api` and `/api/x`, not for `/apix`. */
    paths: z.array(PathPrefix).min(1).max(64).optional(),
    /**
     * Whether the name may lead to a private or loopback address or to the host itself. Link-local and metadata
     * addresses are never reached.
     */
    private: z.boolean().default(false),
  }),
);
export type NetworkRule = z.infer<typeof NetworkRule>;

export const RegistryName = z.enum(["npm", "pypi", "debian", "crates", "go"]);
export type RegistryName = z.infer<typeof RegistryName>;

/** `transparent`: programs that know nothing of proxies are carried, too. */
const transparent = z.boolean().default(false);
export const NetworkPolicy = z.lazy(() =>
  z.discriminatedUnion("mode", [
    z.strictObject({ mode: z.literal("none") }),
    z.strictObject({
      mode: z.literal("allow"),
      rules: z.array(NetworkRule).max(1000).default([]),
      /** Package registries, read through the host's cache. */
      registries: z.array(RegistryName).max(20).default([]),
      transparent,
    }),
    /** Every public address. Private ones only where a rule says so. */
    z.strictObject({
      mode: z.literal("open"),
      rules: z.array(NetworkRule).max(1000).default([]),
      registries: z.array(RegistryName).max(20).default([]),
      transparent,
    }),
  ]),
);
export type NetworkPolicy = z.infer<typeof NetworkPolicy>;

/** Where a secret's value is taken from, on the host. `env` alone means the variable of the secret's own name. */
export const SecretSource = z.lazy(() =>
  z.union([
    z.literal("env"),
    z.strictObject({ env: EnvName }),
    z.strictObject({ file: z.string().min(1).max(4096) }),
    z.strictObject({ command: z.array(z.string().max(PATH_CHARACTERS_MAX)).min(1).max(64) }),
  ]),
);
export type SecretSource = z.infer<typeof SecretSource>;

/** Where a secret's value may go. */
export const secretScope = () => ({
  hosts: z.array(HostPattern).min(1).max(64),
  ports: z.array(Port).min(1).max(64).default([443]),
  /** The only header in which the placeholder is replaced; absent: any header. */
  header: z
    .string()
    .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/, "is not a header's name")
    .transform((name) => name.toLowerCase())
    .optional(),
  methods: z.array(Method).min(1).max(20).optional(),
  paths: z.array(PathPrefix).min(1).max(64).optional(),
  /** git asks for it by itself when it talks to these hosts, as the password of this user. */
  git: z.strictObject({ username: z.string().min(1).max(128).default("x-access-token") }).optional(),
});

/**
 * A secret that stays outside: inside there is a placeholder in a variable of its name; the value is put in on the way
 * to the named hosts, over verified TLS only.
 */
export const SecretSpec = z.lazy(() => z.strictObject({ from: SecretSource.default("env"), ...secretScope() }));
export type SecretSpec = z.infer<typeof SecretSpec>;

/** A secret of the configuration: with the owners that may use it; `*`: all. */
export const ConfiguredSecret = z.lazy(() =>
  z.strictObject({
    from: SecretSource.default("env"),
    ...secretScope(),
    owners: z.union([z.literal("*"), z.array(Owner).min(1).max(1000)]).default([LOCAL_OWNER]),
  }),
);
export type ConfiguredSecret = z.infer<typeof ConfiguredSecret>;

/** The secrets of a configuration that an owner may use. */
export function secretsForOwner(secrets: Readonly<Record<string, ConfiguredSecret>>, owner: Owner): Record<string, SecretSpec> {
  const usable = Object.entries(secrets).filter(([, { owners }]) => owners === "*" || owners.includes(owner));
  return Object.fromEntries(usable.map(([name, { owners: _, ...secret }]) => [name, secret]));
}

export const GatewayWire = z.enum(["anthropic", "openai"]);
export type GatewayWire = z.infer<typeof GatewayWire>;

/** Models for programs inside, without a key: the host holds it, counts and records. */
export const GatewaySpec = z.lazy(() =>
  z.strictObject({
    wires: z.array(GatewayWire).min(1).max(10).default(["anthropic", "openai"]),
    /** Patterns of the models that may be asked for, `*` for any characters; absent: all. */
    models: z.array(z.string().min(1).max(200)).min(1).max(100).optional(),
    /** Calls are refused once this much was spent, or so many tokens were used, by this sandbox. */
    costUsdMax: z.number().positive().optional(),
    tokensMax: z.int().positive().optional(),
  }),
);
export type GatewaySpec = z.infer<typeof GatewaySpec>;
