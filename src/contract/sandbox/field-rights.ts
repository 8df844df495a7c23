import { defaultLimits } from "../defaults/default-limits.ts";
import type { HarnessSettings, PermissionRules } from "../harness/harness.ts";
import { parseImageReference } from "../image/image-reference.ts";
import type { GatewayConfig, NetworkPolicy, SecretConfig } from "../network/network.ts";
import { showRule } from "../network/network-text.ts";
import { visible, visibleWords } from "../visible-text.ts";

/** A right that an agent file requests beyond those of any file. */
export interface RequestedRight {
  /** One line of printable ASCII, even if the file contains other characters. */
  text: string;
  /** Why a file can never be granted this right. */
  never?: string;
  /** The part of the setting that needs the right. */
  field?: string;
}

/** The usual limits of an agent on this machine. Requesting that much or less needs no right. */
export interface UsualBounds {
  limits: Readonly<Record<string, number | undefined>>;
  harness?: HarnessSettings;
  permissions?: PermissionRules;
}

export type RightJudge<Value> = (value: Value, usual: UsualBounds) => readonly RequestedRight[];
/** A judge for every setting, so that a new setting does not compile before it is judged. */
export type RightJudges<Settings> = { readonly [Key in keyof Required<Settings>]: RightJudge<NonNullable<Settings[Key]>> };

/** For settings that need no right: words for the model, a choice among built-in tools, or a tighter limit. */
export const narrows: RightJudge<unknown> = () => [];

/** Creates the judge of a group of settings. A setting without a judge needs a right as well. */
export function judgeSettings<Settings extends object>(judges: RightJudges<Settings>): RightJudge<Settings> {
  return (settings, usual) =>
    Object.entries(settings).flatMap(([key, value]) => {
      if (value === undefined) return [];
      const judge = Object.hasOwn(judges, key) ? (judges[key as keyof Settings] as RightJudge<unknown>) : unknownSetting(key);
      return judge(value, usual).map((right) => ({ ...right, field: right.field === undefined ? key : `${key}.${right.field}` }));
    });
}

function unknownSetting(key: string): RightJudge<unknown> {
  return () => [{ text: `use the setting ${visible(key)}`, never: "its effect is unknown" }];
}

/** Judges a limit against the usual one. If there is no usual one, any limit is tighter. */
export function above(what: string, usualOf: (usual: UsualBounds) => number | undefined): RightJudge<number> {
  return (value, usual) => {
    const bound = usualOf(usual);
    return bound === undefined || value <= bound ? [] : [{ text: `${value} ${what} (usual: ${bound})` }];
  };
}

/** Judges a limit or size of a sandbox against the configured one, or else the default. */
export function aboveLimit(
  name: string,
  what: string,
  unset = (defaultLimits as Readonly<Record<string, number>>)[name],
): RightJudge<number> {
  return above(what, ({ limits }) => limits[name] ?? unset);
}

/** Why only the command line can choose it. */
export const onlyByOption = (option: string) => `a file cannot choose what is on this machine; use ${option}`;
const NO_MACHINE_PATH = "a file cannot use a folder or archive of this machine as its image; use --image";
const NO_SECRET_SOURCE =
  "a folder's file cannot define where a secret comes from and where it is sent; define the secret in your configuration, and write secrets: [NAME] here";

/** Returns whether an image reference may name anything other than an image in a registry or engine. */
export function isMachinePath(reference: string): boolean {
  return parseImageReference(reference)?.kind !== "registry";
}

export const rightOfImage: RightJudge<string> = (image) => [
  { text: `start from the image ${visible(image)}`, ...(isMachinePath(image) && { never: NO_MACHINE_PATH }) },
];

export const rightOfPolicy: RightJudge<NetworkPolicy> = (policy) => {
  if (policy.mode === "none") return [];
  return [
    { text: policy.mode === "open" ? "reach every public address" : "have a network" },
    ...policy.rules.map((rule) => ({ text: `reach ${visible(showRule(rule))}` })),
    ...policy.registries.map((registry) => ({ text: `reach the package registry ${registry}` })),
    ...(policy.transparent ? [{ text: "use a transparent proxy for programs without proxy support" }] : []),
  ];
};

export const rightOfSecrets: RightJudge<Record<string, SecretConfig>> = (secrets) =>
  Object.entries(secrets).map(([name, { from, hosts }]) => {
    const source = from === "env" ? `the variable ${name}` : visibleWords(Object.entries(from).flat(2));
    return { text: `use the secret ${name}, from ${source}, for ${visible(hosts.join(", "))}`, field: name, never: NO_SECRET_SOURCE };
  });

export const rightOfGateway: RightJudge<GatewayConfig> = ({ wires, models, costUsdMax, tokensMax }) => {
  const bounds = [
    models === undefined ? "any model" : visible(models.join(", ")),
    costUsdMax === undefined ? "" : `at most $${costUsdMax}`,
    tokensMax === undefined ? "" : `at most ${tokensMax} tokens`,
  ].filter((bound) => bound !== "");
  return [{ text: `ask models of ${wires.join(" and ")} from inside, with your key and at your cost: ${bounds.join(", ")}` }];
};
