import { absoluteSecrets } from "../../contract/absolute-secrets.ts";
import { CaissonError } from "../../contract/error.ts";
import { EnvName } from "../../contract/ids.ts";
import { type GatewaySpec, GatewayWire, type NetworkPolicy, type SecretSpec } from "../../contract/network.ts";
import { parsePolicy, parseSecret } from "../../contract/network-text.ts";
import { noHostReached, withSecretHosts } from "../../contract/secret-hosts.ts";
import type { ParsedArguments } from "../command.ts";
import { parseCount, parseNumber } from "./option-values.ts";

export interface NetworkAsked {
  network?: NetworkPolicy;
  secrets: Record<string, SecretSpec>;
  /** Those that only the station knows. */
  secretNames: string[];
  gateway?: GatewaySpec;
}

/**
 * What of a network was asked for on the command line. A secret's hosts may be reached, unless the network is none by
 * name. Throws `invalid`.
 */
export function networkFrom(
  given: ParsedArguments,
  known: { folder: string; secrets: Readonly<Record<string, SecretSpec>> },
): NetworkAsked {
  const words = given.options("network");
  const secrets: Record<string, SecretSpec> = {};
  const secretNames: string[] = [];
  for (const text of given.options("secret")) {
    const { name, spec } = secretFrom(text, known.secrets);
    if (!EnvName.safeParse(name).success)
      throw new CaissonError("invalid", `a secret is named like a variable, not ${JSON.stringify(name)}`, {
        hint: "Letters, digits and _.",
      });
    if (secrets[name] !== undefined || secretNames.includes(name)) throw new CaissonError("invalid", `the secret ${name} is given twice`);
    if (spec === null) secretNames.push(name);
    else secrets[name] = spec;
  }
  const policy = words.length === 0 ? undefined : parsePolicy(words);
  const network = withSecretHosts(policy, secrets);
  if (policy?.mode === "none" && secretNames.length > 0) throw noHostReached();
  const gateway = gatewayFrom(given);
  return {
    secrets: absoluteSecrets(secrets, known.folder),
    secretNames,
    ...(network === undefined ? {} : { network }),
    ...(gateway === undefined ? {} : { gateway }),
  };
}

/** Null for one that the configuration does not define: the station may have it. Throws `invalid`. */
function secretFrom(text: string, defined: Readonly<Record<string, SecretSpec>>): { name: string; spec: SecretSpec | null } {
  const name = text.trim();
  if (!EnvName.safeParse(name).success) return parseSecret(text);
  return { name, spec: (Object.hasOwn(defined, name) ? defined[name] : undefined) ?? null };
}

function gatewayFrom(given: ParsedArguments): GatewaySpec | undefined {
  const wires = given.option("gateway");
  const models = given.option("gateway-models");
  const cost = given.option("gateway-cost");
  const tokens = given.option("gateway-tokens");
  if (wires === undefined) {
    if (models ?? cost ?? tokens)
      throw new CaissonError("invalid", "--gateway-… goes with --gateway", {
        hint: "Say --gateway anthropic, openai or anthropic,openai.",
      });
    return undefined;
  }
  return {
    wires: wires.split(",").map((text) => {
      const wire = GatewayWire.safeParse(text.trim());
      if (wire.success) return wire.data;
      throw new CaissonError("invalid", `there is no gateway ${JSON.stringify(text)}`, {
        hint: "anthropic, openai, or both with a comma.",
      });
    }),
    ...(models === undefined ? {} : { models: models.split(",").map((model) => model.trim()) }),
    ...(cost === undefined ? {} : { costUsdMax: parseNumber("gateway-cost", cost) }),
    ...(tokens === undefined ? {} : { tokensMax: parseCount("gateway-tokens", tokens) }),
  };
}
