import { relative } from "node:path";
import type { AgentDefinition } from "../../contract/agent.ts";
import { CaissonError } from "../../contract/error.ts";
import type { SecretSpec } from "../../contract/network.ts";
import { visible } from "../../lib/visible.ts";
import type { AgentPlaces } from "../file/agent-places.ts";
import type { ChosenAgent } from "../file/find-agents.ts";
import { isMachinePath } from "./machine-path.ts";
import { type Right, rightsOf, type UsualBounds } from "./rights.ts";
import { type TrustStore, trusts } from "./trust-store.ts";

export interface AgentSourceOptions {
  places: AgentPlaces;
  trust: TrustStore;
  /** Those that the user's own configuration defines. */
  secrets: Readonly<Record<string, SecretSpec>>;
  usual: UsualBounds;
  /** Told which file is used, and which is not, where that is not obvious. */
  onNotice?: (line: string) => void;
}

/** The one way from a file to an agent that runs. */
export interface AgentSource {
  readonly places: AgentPlaces;
  /**
   * An agent by name or path, ready to run. Of a file that is neither the user's own nor built in, everything that
   * widens what an agent may do must have been trusted for exactly this content, or be given (settings such as
   * `sandbox.network` that the caller replaces with what the user said elsewhere). Throws `denied` naming what is
   * missing, `not_found`, `invalid`.
   */
  load(nameOrPath: string, options?: LoadOptions): Promise<AgentDefinition>;
}

export interface LoadOptions {
  input?: Record<string, unknown>;
  given?: ReadonlySet<string>;
  /** The caller vouches for this file, whatever it asks for. */
  vouched?: boolean;
  /**
   * Those that can be named, where these are not just the configuration's; null: whoever runs the agent looks them up.
   */
  secrets?: Readonly<Record<string, SecretSpec>> | null;
}

const RIGHTS_SHOWN_MAX = 40;

export function createAgentSource(options: AgentSourceOptions): AgentSource {
  return {
    places: options.places,
    async load(nameOrPath, { input = {}, given = new Set<string>(), vouched = false, secrets = options.secrets } = {}) {
      // A process that lists runs has no use for them.
      const [{ findAgent }, { defineAgent, settingsOf }] = await Promise.all([
        import("../file/find-agents.ts"),
        import("../file/define-agent.ts"),
      ]);
      const chosen = await findAgent(nameOrPath, options.places);
      const settings = settingsOf(chosen.file);
      tellWhichFile(chosen, options);
      if (chosen.origin === "folder" && !vouched) await checkRights(chosen, { ...options, settings, given });
      const { image } = settings.sandbox;
      // A user's own file, too: such an image shows a part of the machine, which is said where it can be seen.
      if (image !== undefined && isMachinePath(image) && !vouched && !given.has("sandbox.image")) {
        throw new CaissonError(
          "denied",
          `${chosen.path}: ${visible(image)} is a place on this machine, which no agent's file can choose as its image`,
          {
            hint: `Give it on the command line: --image ${visible(image)}`,
          },
        );
      }
      const definition = await defineAgent(chosen.file, { input });
      return secrets === null ? definition : withSecrets(definition, { ...options, secrets, path: chosen.path, given });
    },
  };
}

function tellWhichFile({ name, path, origin, passedOver }: ChosenAgent, { places, onNotice }: AgentSourceOptions): void {
  const shown = (file: string) => visible(relative(places.cwd, file) || file);
  if (origin === "folder") onNotice?.(`the agent ${name} is ${shown(path)}, a file that is not your own`);
  for (const other of passedOver) {
    const used = origin === "folder" ? shown(path) : origin === "own" ? "your own" : "the built-in one";
    onNotice?.(`${shown(other)} is not used: the agent ${name} is ${used}. To use it, name the file.`);
  }
}

/** Throws `denied`, naming what was not granted. */
async function checkRights(
  chosen: ChosenAgent,
  options: AgentSourceOptions & { settings: AgentDefinition; given: ReadonlySet<string> },
): Promise<void> {
  const rights = rightsOf(options.settings, options.usual).filter(({ field }) => !options.given.has(field));
  const impossible = rights.filter(({ never }) => never !== undefined);
  if (rights.length === 0) return;
  const file = visible(relative(options.places.cwd, chosen.path) || chosen.path);
  const details = { file: chosen.path, rights };
  if (impossible.length > 0) {
    throw new CaissonError("denied", `${file} asks for what a file cannot be granted:\n${linesOf(impossible)}`, {
      hint: [...new Set(impossible.map(({ never = "" }) => `${never.charAt(0).toUpperCase()}${never.slice(1)}.`))].join("\n"),
      details,
    });
  }
  const record = await options.trust.get(chosen.path);
  if (trusts(record, chosen.file.source)) return;
  const since = record === null ? "asks for rights that you have not granted" : "has changed since you trusted it, and asks for";
  throw new CaissonError("denied", `${file} ${since}:\n${linesOf(rights, new Set(record?.rights))}`, {
    hint: `Look at the file; \`caisson trust ${file}\` grants this to exactly this content. Or give what you want on the command line.`,
    details,
  });
}

function linesOf(rights: readonly Right[], before: ReadonlySet<string> = new Set()): string {
  const lines = rights.map(({ text }) => `${before.has(text) ? " " : "+"} ${text}`);
  const more = lines.length - RIGHTS_SHOWN_MAX;
  return [...lines.slice(0, RIGHTS_SHOWN_MAX), ...(more > 0 ? [`  and ${more} more`] : [])].join("\n");
}

/** The secrets it names, as the user's configuration defines them. Throws `not_found` for one it does not. */
function withSecrets(
  definition: AgentDefinition,
  options: AgentSourceOptions & { path: string; given: ReadonlySet<string> },
): AgentDefinition {
  const { secretNames, secrets } = definition.sandbox;
  const wanted = secretNames.filter((name) => !options.given.has(`sandbox.secretNames.${name}`));
  const missing = wanted.filter((name) => !Object.hasOwn(options.secrets, name));
  if (missing.length > 0) {
    throw new CaissonError(
      "not_found",
      `${options.path} names the secret ${missing.join(", ")}, which neither the station nor its configuration has`,
      {
        hint: 'Keep it with `caisson secret set NAME@HOST`, define it under "secrets" in config.json, or give it with --secret.',
      },
    );
  }
  const resolved = Object.fromEntries(wanted.map((name) => [name, options.secrets[name] as SecretSpec]));
  return { ...definition, sandbox: { ...definition.sandbox, secrets: { ...secrets, ...resolved } } };
}
