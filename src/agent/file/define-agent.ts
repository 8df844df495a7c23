import { createHash } from "node:crypto";
import { basename } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { AgentDefinition, type GuardianSettings } from "../../contract/agent/agent.ts";
import type { AgentDefaults } from "../../contract/agent/agent-defaults.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { checkValue, tellProblems } from "../../contract/error/plain-problems.ts";
import type { NetworkPolicy } from "../../contract/network/network.ts";
import { parsePolicy, parseSecret } from "../../contract/network/network-text.ts";
import { type FieldText, fieldOptions, limitFieldOptions, type ReadAs } from "../../contract/sandbox/sandbox-field-options.ts";
import { TemplateName } from "../../contract/template/template.ts";
import { bytesFrom, durationFrom } from "../../lib/quantity.ts";
import { permissionFloor, permissionRules } from "../permissions.ts";
import { type SaidOfAgent, withDefaults } from "./agent-defaults.ts";
import type { Frontmatter } from "./frontmatter.ts";
import type { AgentFile } from "./parse-agent-file.ts";

/**
 * Renders the file's template and converts its settings to the form the loop uses. Throws `invalid` for an invalid
 * input or value.
 */
export async function defineAgent(
  file: AgentFile,
  options: { input?: Record<string, unknown>; checkInput?: boolean; defaults?: AgentDefaults } = {},
): Promise<AgentDefinition> {
  const definition = settingsOf(file, options.defaults);
  return { ...definition, system: await renderTemplate(file, { given: options.input ?? {}, check: options.checkInput ?? true }) };
}

/**
 * Converts the settings without rendering the prompt: a template is a small program, and we check the rights a file
 * requests before we evaluate any of it. Throws `invalid`.
 */
export function settingsOf(file: AgentFile, defaults: AgentDefaults = {}): AgentDefinition {
  const { frontmatter } = file;
  const { name, description, model, tools, agents, config, permissions = {}, hooks, mcp, workspace } = frontmatter;
  const block = sandboxBlock(file);
  const settings = {
    ...optional({ model, tools, agents, temperature: config?.temperature, outputTokensMax: config?.maxOutputTokens }),
    harness: harnessSettings(file),
    permissions: permissionRules(permissions),
    floor: permissionFloor(permissions),
    ...optional({ guardian: guardianOf(frontmatter.guardian), hooks, mcp }),
    sandbox: sandboxSettings(file, block),
    workspace: optional({ scope: workspace?.scope, cleanup: workspace?.cleanup }),
    ...optional({ skills: sources(frontmatter.skills), memory: sources(frontmatter.memory) }),
  };
  const parsed = checkValue(AgentDefinition, {
    ...withDefaults(settings as SaidOfAgent, defaultsFor(block, defaults)),
    name: name ?? basename(file.path).replace(/\.prompt$/, ""),
    description: description ?? "",
    system: "",
  });
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", `${file.path}: ${tellProblems(parsed.problems)}`);
}

/** Returns the digest that a run log stores, to detect later changes to the file. */
export function digestOf(definition: AgentDefinition): string {
  return createHash("sha256").update(JSON.stringify(definition)).digest("hex").slice(0, 16);
}

async function renderTemplate(file: AgentFile, options: { given: Record<string, unknown>; check: boolean }): Promise<string> {
  const { Dotprompt, picoschema } = await import("dotprompt");
  const input = { ...(file.frontmatter.input?.default ?? {}), ...options.given };
  const toInvalid = (what: string, error: unknown) =>
    new CaissonError("invalid", `${file.path}: ${what}: ${error instanceof Error ? error.message.slice(0, 500) : error}`, { cause: error });
  const schema = file.frontmatter.input?.schema;
  if (schema !== undefined) {
    const json = await picoschema(schema).catch((error: unknown) => {
      throw toInvalid("input.schema is not a valid schema", error);
    });
    if (options.check) checkInput(file, json, input);
  }
  try {
    const rendered = await new Dotprompt().render(file.source, { input });
    return rendered.messages
      .flatMap((message) => message.content.map((part) => ("text" in part && typeof part.text === "string" ? part.text : "")))
      .join("\n")
      .trim();
  } catch (error) {
    throw toInvalid("the template cannot be rendered", error);
  }
}

/** Throws `invalid` naming the inputs that are missing, unknown or of the wrong kind. */
function checkInput(file: AgentFile, schema: unknown, input: Record<string, unknown>): void {
  const properties = Object.entries((schema as { properties?: Record<string, { type?: string | string[] }> } | null)?.properties ?? {});
  const typed = Object.fromEntries(
    Object.entries(input).map(([key, value]) => [key, fromText(value, properties.find(([name]) => name === key)?.[1].type)]),
  );
  Object.assign(input, typed);
  const parsed = checkValue(z.fromJSONSchema(schema as never), typed);
  if (parsed.success) return;
  const problems = parsed.problems.map((each) =>
    each.unknown === undefined ? each : { ...each, text: `unknown input ${each.unknown.key}` },
  );
  throw new CaissonError("invalid", `${file.path}: the agent's inputs are invalid: ${tellProblems(problems)}`, {
    hint: `Its inputs are ${properties.map(([name]) => name).join(", ")}. Set each with --input NAME=VALUE.`,
  });
}

/** Converts a value from the command line, where everything is text. */
function fromText(value: unknown, type: string | string[] | undefined): unknown {
  if (typeof value !== "string") return value;
  const types = [type].flat();
  if ((types.includes("number") || types.includes("integer")) && /^-?\d+(\.\d+)?$/.test(value)) return Number(value);
  if (types.includes("boolean") && /^(true|false)$/.test(value)) return value === "true";
  return value;
}

function harnessSettings(file: AgentFile) {
  const { frontmatter } = file;
  const harness = typeof frontmatter.harness === "object" ? frontmatter.harness : {};
  const config = frontmatter.harness_config ?? {};
  const doomLoop = {
    ...optional({ threshold: config.doom_loop_threshold ?? harness.doom_loop_threshold }),
    ...harness.doom_loop,
    ...frontmatter.doom_loop,
  };
  const compaction = { ...harness.compaction, ...frontmatter.compaction };
  const timeout = config.timeout ?? harness.timeout;
  return {
    ...optional({
      maxSteps: config.max_steps ?? harness.max_steps,
      timeoutMs: timeout === undefined ? undefined : durationFrom(String(timeout)),
      retries: config.retries ?? harness.retries,
      onOutage: config.on_outage ?? harness.on_outage,
      onBudget: config.on_budget ?? harness.on_budget,
      onAsk: config.on_ask ?? harness.on_ask,
    }),
    doomLoop,
    compaction: optional({ enabled: compaction.enabled, threshold: compaction.threshold, protectTokens: compaction.protect_tokens }),
  };
}

/** Returns a file's sandbox settings, which may be in three places, with their current names. */
function sandboxBlock(file: AgentFile): SandboxBlock {
  const { frontmatter } = file;
  const fromHarness = typeof frontmatter.harness === "object" ? frontmatter.harness.sandbox : undefined;
  const blocks = [frontmatter.harness_config?.sandbox, fromHarness, frontmatter.sandbox];
  return Object.assign({}, ...blocks.map((block = {}) => withCurrentNames(file, block)));
}

/** `template: host` stands for the machine's own system, even if the defaults name an image. */
function defaultsFor({ template, image }: SandboxBlock, defaults: AgentDefaults): AgentDefaults {
  if (template !== "host" || image !== undefined || defaults.sandbox === undefined) return defaults;
  const { image: _, ...sandbox } = defaults.sandbox;
  return { ...defaults, sandbox };
}

function sandboxSettings(file: AgentFile, sandbox: SandboxBlock) {
  const { network, secrets, gateway, env } = sandbox;
  const { template } = sandbox;
  // A word that cannot be a template's name or id is an image.
  const isName = template !== undefined && TemplateName.safeParse(template).success;
  const image = sandbox.image ?? (template === "host" || isName ? undefined : template);
  return {
    ...plainFields({ ...sandbox, template: isName && sandbox.image === undefined ? template : undefined }, fieldOptions),
    ...optional({ image, env }),
    ...(network !== undefined && { network: saidBy(file, "sandbox.network", () => policyOf(network)) }),
    ...(secrets !== undefined &&
      (Array.isArray(secrets)
        ? { secretNames: secrets }
        : { secrets: saidBy(file, "sandbox.secrets", () => secretsOf(secrets as SecretTable)) })),
    ...(gateway !== undefined && { gateway: Array.isArray(gateway) ? { wires: gateway } : gateway }),
    limits: plainFields(sandbox, limitFieldOptions),
  };
}

type SandboxBlock = NonNullable<Frontmatter["sandbox"]>;

/** Renames older names to the current ones. Throws `invalid` if a setting has both with different values. */
function withCurrentNames(file: AgentFile, block: SandboxBlock): SandboxBlock {
  const named: Record<string, unknown> = { ...block };
  for (const { keys } of Object.values<FieldText>({ ...fieldOptions, ...limitFieldOptions })) {
    const [current = "", ...older] = keys;
    for (const name of older) {
      const value = named[name];
      delete named[name];
      if (value === undefined) continue;
      if (named[current] !== undefined && !isDeepStrictEqual(named[current], value)) {
        throw new CaissonError("invalid", `${file.path}: sandbox.${current} and sandbox.${name} differ, but they are the same setting`, {
          hint: `Keep ${current}; ${name} is its older name.`,
        });
      }
      named[current] = value;
    }
  }
  return named as SandboxBlock;
}

const fileReaders: Readonly<Record<Exclude<ReadAs, "own">, (value: unknown) => unknown>> = {
  switch: (value) => value,
  text: (value) => value,
  list: (value) => value,
  count: (value) => value,
  number: Number,
  bytes: (value) => bytesFrom(String(value)),
  duration: (value) => durationFrom(String(value)),
};

/** Reads the fields in the file, except those that need a separate parser. */
function plainFields(sandbox: SandboxBlock, table: Readonly<Record<string, FieldText>>): Record<string, unknown> {
  const read = Object.entries(table).flatMap(
    ([
      name,
      {
        reads,
        keys: [key],
      },
    ]) => {
      const value = key === undefined ? undefined : (sandbox as Record<string, unknown>)[key];
      return reads === "own" || value === undefined ? [] : [[name, fileReaders[reads](value)]];
    },
  );
  return Object.fromEntries(read);
}

/** Reads a network policy. Files for other systems use a switch and a list of hosts. */
function policyOf(network: NonNullable<SandboxBlock["network"]>): NetworkPolicy {
  if (network === false) return parsePolicy([]);
  if (network === true) return parsePolicy(["open"]);
  if (typeof network === "string") return parsePolicy([network]);
  if (Array.isArray(network)) return parsePolicy(network);
  const hosts = network.allowed_hosts ?? [];
  if (network.enabled === false) return parsePolicy([]);
  return parsePolicy(hosts.length === 0 && network.enabled === true ? ["open"] : hosts);
}

type SecretTable = Exclude<NonNullable<SandboxBlock["secrets"]>, readonly string[]>;

function secretsOf(secrets: SecretTable): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(secrets).map(([name, secret]) => [name, typeof secret === "string" ? parseSecret(`${name}@${secret}`).config : secret]),
  );
}

/** Adds the file and the place in it to an error. */
function saidBy<Result>(file: AgentFile, place: string, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof CaissonError)) throw error;
    throw new CaissonError(error.code, `${file.path}: ${place}: ${error.message}`, {
      cause: error,
      ...(error.hint === undefined ? {} : { hint: error.hint }),
    });
  }
}

/** YAML reads a bare `on` as a string, and `true` as a boolean. */
function guardianOf(value: Frontmatter["guardian"]): GuardianSettings | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "object") return { enabled: value === true || value === "on" };
  return optional({ enabled: value.enabled, atMost: value.at_most });
}

function sources(value: Frontmatter["skills"]): string[] | undefined {
  return Array.isArray(value) ? value : value?.sources;
}

function optional<Values extends Record<string, unknown>>(values: Values): { [Key in keyof Values]?: Exclude<Values[Key], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [Key in keyof Values]?: Exclude<Values[Key], undefined>;
  };
}
