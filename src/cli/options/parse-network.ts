import { CaissonError } from "../../contract/error/error.ts";
import { EnvName } from "../../contract/ids.ts";
import { type GatewayConfig, GatewayWire, type NetworkPolicy, type SecretConfig } from "../../contract/network/network.ts";
import { parsePolicy, parseSecret } from "../../contract/network/network-text.ts";
import { absoluteSecrets } from "../../contract/secret/absolute-secrets.ts";
import { noHostReached, withSecretHosts } from "../../contract/secret/secret-hosts.ts";
import type { ParsedArguments } from "../command.ts";
import { parseCount, parseNumber } from "./option-values.ts";

export interface ParsedNetwork {
  network?: NetworkPolicy;
  secrets: Record<string, SecretConfig>;
  /** Names of secrets that only the station can resolve. */
  secretNames: string[];
  gateway?: GatewayConfig;
}

/**
 * Parses the network options of a command line. The hosts of a secret are reachable, unless the network is `none`.
 * Throws `invalid`.
 */
export function networkFrom(
  args: ParsedArguments,
  known: { folder: string; secrets: Readonly<Record<string, SecretConfig>> },
): ParsedNetwork {
  const words = args.options("network");
  const secrets: Record<string, SecretConfig> = {};
  const secretNames: string[] = [];
  for (const text of args.options("secret")) {
    const { name, config } = secretFrom(text, known.secrets);
    if (!EnvName.safeParse(name).success)
      throw new CaissonError("invalid", `${JSON.stringify(name)} cannot be the name of a secret`, {
        hint: "Use letters, digits and _, as in a variable name.",
      });
    if (Object.hasOwn(secrets, name) || secretNames.includes(name)) throw new CaissonError("invalid", `the secret ${name} is given twice`);
    if (config === null) secretNames.push(name);
    else secrets[name] = config;
  }
  const policy = words.length === 0 ? undefined : parsePolicy(words);
  const network = withSecretHosts(policy, secrets);
  if (policy?.mode === "none" && secretNames.length > 0) throw noHostReached();
  const gateway = gatewayFrom(args);
  return {
    secrets: absoluteSecrets(secrets, known.folder),
    secretNames,
    ...(network === undefined ? {} : { network }),
    ...(gateway === undefined ? {} : { gateway }),
  };
}

/**
 * Parses --secret. Returns a null config for a name that config.json does not define, because the station may know it.
 * Throws `invalid`.
 */
function secretFrom(text: string, defined: Readonly<Record<string, SecretConfig>>): { name: string; config: SecretConfig | null } {
  const name = text.trim();
  if (!EnvName.safeParse(name).success) return parseSecret(text);
  return { name, config: (Object.hasOwn(defined, name) ? defined[name] : undefined) ?? null };
}

function gatewayFrom(args: ParsedArguments): GatewayConfig | undefined {
  const wires = args.option("gateway");
  const models = args.option("gateway-models");
  const cost = args.option("gateway-cost");
  const tokens = args.option("gateway-tokens");
  if (wires === undefined) {
    if (models ?? cost ?? tokens)
      throw new CaissonError("invalid", "the other --gateway-… options require --gateway", {
        hint: "Add --gateway anthropic, openai or anthropic,openai.",
      });
    return undefined;
  }
  return {
    wires: wires.split(",").map((text) => {
      const wire = GatewayWire.safeParse(text.trim());
      if (wire.success) return wire.data;
      throw new CaissonError("invalid", `there is no gateway ${JSON.stringify(text)}`, {
        hint: "Use anthropic, openai or anthropic,openai.",
      });
    }),
    ...(models === undefined ? {} : { models: models.split(",").map((model) => model.trim()) }),
    ...(cost === undefined ? {} : { costUsdMax: parseNumber("gateway-cost", cost) }),
    ...(tokens === undefined ? {} : { tokensMax: parseCount("gateway-tokens", tokens) }),
  };
}
