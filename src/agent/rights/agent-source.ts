import { relative } from "node:path";
import type { AgentDefinition } from "../../contract/agent/agent.ts";
import type { AgentDefaults } from "../../contract/agent/agent-defaults.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { SecretConfig } from "../../contract/network/network.ts";
import { isMachinePath, type UsualBounds } from "../../contract/sandbox/field-rights.ts";
import { visible } from "../../contract/visible-text.ts";
import type { AgentPlaces } from "../file/agent-places.ts";
import type { ChosenAgent } from "../file/find-agents.ts";
import { type Right, rightsBeyond } from "./rights.ts";
import { type TrustStore, trusts } from "./trust-store.ts";

export interface AgentSourceOptions {
  places: AgentPlaces;
  trust: TrustStore;
  /** The secrets that the user's own configuration defines. */
  secrets: Readonly<Record<string, SecretConfig>>;
  /** The default limits of a sandbox. */
  limits: UsualBounds["limits"];
  /** The configuration's defaults for every agent. */
  defaults: AgentDefaults;
  /** Called with a line for the user if it is not obvious which file is used or ignored. */
  onNotice?: (line: string) => void;
}

/** Loads agents. Every agent that runs from a file passes through here. */
export interface AgentSource {
  readonly places: AgentPlaces;
  /**
   * Loads an agent by name or path, ready to run. A file that is neither the user's own nor built in may widen what an
   * agent may do only if the user has trusted exactly this content. We do not check the settings in `overrides` (such
   * as `sandbox.network`), because the caller replaces them with the user's own choice. Throws `denied` naming the
   * missing rights, `not_found`, `invalid`.
   */
  load(nameOrPath: string, options?: LoadOptions): Promise<AgentDefinition>;
}

export interface LoadOptions {
  input?: Record<string, unknown>;
  overrides?: ReadonlySet<string>;
  /** Trusts this file with everything it requests. */
  isTrusted?: boolean;
  /**
   * The secrets that an agent may name. Default: those of the configuration. If null, the process that runs the agent
   * looks them up.
   */
  secrets?: Readonly<Record<string, SecretConfig>> | null;
}

const RIGHTS_SHOWN_MAX = 40;

export function createAgentSource(options: AgentSourceOptions): AgentSource {
  return {
    places: options.places,
    async load(
      nameOrPath,
      { input = {}, overrides: overriddenFields = new Set<string>(), isTrusted = false, secrets = options.secrets } = {},
    ) {
      // Loaded late: a process that only lists runs does not need them.
      const [{ findAgent }, { defineAgent, settingsOf }] = await Promise.all([
        import("../file/find-agents.ts"),
        import("../file/define-agent.ts"),
      ]);
      const chosen = await findAgent(nameOrPath, options.places);
      const settings = settingsOf(chosen.file, options.defaults);
      tellWhichFile(chosen, options);
      if (chosen.origin === "folder" && !isTrusted) await checkRights(chosen, { ...options, settings, overrides: overriddenFields });
      const { image } = settings.sandbox;
      // We check the user's own files as well. Such an image exposes a part of the machine, so the user must choose it
      // visibly, in the configuration or on the command line.
      const isOwn = image === options.defaults.sandbox?.image;
      if (image !== undefined && !isOwn && isMachinePath(image) && !isTrusted && !overriddenFields.has("sandbox.image")) {
        throw new CaissonError(
          "denied",
          `${chosen.path}: ${visible(image)} is a path on this machine, which an agent file cannot use as its image`,
          {
            hint: `Choose it on the command line: --image ${visible(image)}`,
          },
        );
      }
      const definition = await defineAgent(chosen.file, { input, defaults: options.defaults });
      return secrets === null
        ? definition
        : withSecrets(definition, { ...options, secrets, path: chosen.path, overrides: overriddenFields });
    },
  };
}

function tellWhichFile({ name, path, origin, passedOver }: ChosenAgent, { places, onNotice }: AgentSourceOptions): void {
  const formatPath = (file: string) => visible(relative(places.cwd, file) || file);
  if (origin === "folder") onNotice?.(`the agent ${name} is ${formatPath(path)}, a file that is not your own`);
  for (const other of passedOver) {
    const used = origin === "folder" ? formatPath(path) : origin === "own" ? "your own" : "the built-in one";
    onNotice?.(`${formatPath(other)} is not used: the agent ${name} is ${used}. To use it, name the file.`);
  }
}

/** Throws `denied`, naming the rights that were not granted. */
async function checkRights(
  chosen: ChosenAgent,
  options: AgentSourceOptions & { settings: AgentDefinition; overrides: ReadonlySet<string> },
): Promise<void> {
  const rights = rightsBeyond(options.settings, options.defaults, options.limits).filter(({ field }) => !options.overrides.has(field));
  const impossible = rights.filter(({ never }) => never !== undefined);
  if (rights.length === 0) return;
  const file = visible(relative(options.places.cwd, chosen.path) || chosen.path);
  const details = { file: chosen.path, rights };
  if (impossible.length > 0) {
    throw new CaissonError("denied", `${file} requests rights that a file cannot be granted:\n${linesOf(impossible)}`, {
      hint: [...new Set(impossible.map(({ never = "" }) => `${never.charAt(0).toUpperCase()}${never.slice(1)}.`))].join("\n"),
      details,
    });
  }
  const record = await options.trust.get(chosen.path);
  if (trusts(record, chosen.file.source)) return;
  const since = record === null ? "requests rights that you have not granted" : "has changed since you trusted it, and requests";
  throw new CaissonError("denied", `${file} ${since}:\n${linesOf(rights, new Set(record?.rights))}`, {
    hint: `Review the file, then grant these rights to exactly this content with \`caisson trust ${file}\`. Or make these settings on the command line.`,
    details,
  });
}

function linesOf(rights: readonly Right[], before: ReadonlySet<string> = new Set()): string {
  const lines = rights.map(({ text }) => `${before.has(text) ? " " : "+"} ${text}`);
  const more = lines.length - RIGHTS_SHOWN_MAX;
  return [...lines.slice(0, RIGHTS_SHOWN_MAX), ...(more > 0 ? [`  and ${more} more`] : [])].join("\n");
}

/** Resolves the secrets that a definition names. Throws `not_found` for secrets that are not defined. */
function withSecrets(
  definition: AgentDefinition,
  options: AgentSourceOptions & { path: string; overrides: ReadonlySet<string> },
): AgentDefinition {
  const { secretNames, secrets } = definition.sandbox;
  const wanted = secretNames.filter((name) => !options.overrides.has(`sandbox.secretNames.${name}`));
  const missing = wanted.filter((name) => !Object.hasOwn(options.secrets, name));
  if (missing.length > 0) {
    throw new CaissonError(
      "not_found",
      `${options.path} needs the secret ${missing.join(", ")}, which neither the station nor its configuration has`,
      {
        hint: 'Store it with `caisson secret set NAME@HOST`, define it under "secrets" in config.json, or pass it with --secret.',
      },
    );
  }
  const resolved = Object.fromEntries(wanted.map((name) => [name, options.secrets[name] as SecretConfig]));
  return { ...definition, sandbox: { ...definition.sandbox, secrets: { ...secrets, ...resolved } } };
}
