import { createHash } from "node:crypto";
import { basename } from "node:path";
import { z } from "zod";
import { AgentDefinition, type GuardianSettings } from "../../contract/agent.ts";
import { CaissonError } from "../../contract/error.ts";
import type { NetworkPolicy } from "../../contract/network.ts";
import { parsePolicy, parseSecret } from "../../contract/network-text.ts";
import { checkValue, tellProblems } from "../../contract/plain-problems.ts";
import { bytesFrom, durationFrom } from "../../lib/quantity.ts";
import { permissionFloor, permissionRules } from "../permissions.ts";
import type { Frontmatter } from "./frontmatter.ts";
import type { AgentFile } from "./parse-agent-file.ts";

/**
 * Renders the file's template and puts the settings into the form the loop uses. Throws `invalid` for an input or a
 * value that does not fit.
 */
export async function defineAgent(
  file: AgentFile,
  options: { input?: Record<string, unknown>; checkInput?: boolean } = {},
): Promise<AgentDefinition> {
  const definition = settingsOf(file);
  return { ...definition, system: await renderTemplate(file, { given: options.input ?? {}, check: options.checkInput ?? true }) };
}

/**
 * The same without its prompt: a template is a small program, and what a file asks for is judged before anything of it
 * is evaluated. Throws `invalid`.
 */
export function settingsOf(file: AgentFile): AgentDefinition {
  const { frontmatter } = file;
  const parsed = checkValue(AgentDefinition, {
    name: frontmatter.name ?? basename(file.path).replace(/\.prompt$/, ""),
    description: frontmatter.description ?? "",
    ...optional({ model: frontmatter.model, tools: frontmatter.tools }),
    agents: frontmatter.agents ?? [],
    system: "",
    ...optional({ temperature: frontmatter.config?.temperature, outputTokensMax: frontmatter.config?.maxOutputTokens }),
    harness: harnessSettings(file),
    permissions: permissionRules(frontmatter.permissions ?? {}),
    floor: permissionFloor(frontmatter.permissions ?? {}),
    ...optional({ guardian: guardianOf(frontmatter.guardian) }),
    hooks: frontmatter.hooks ?? {},
    mcp: frontmatter.mcp ?? {},
    sandbox: sandboxSettings(file),
    workspace: optional({ scope: frontmatter.workspace?.scope, cleanup: frontmatter.workspace?.cleanup }),
    skills: sources(frontmatter.skills) ?? [],
    memory: sources(frontmatter.memory) ?? ["AGENTS.md"],
  });
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", `${file.path}: ${tellProblems(parsed.problems)}`);
}

/** What a run's log keeps of the definition, so that it can be told whether a file changed since. */
export function digestOf(definition: AgentDefinition): string {
  return createHash("sha256").update(JSON.stringify(definition)).digest("hex").slice(0, 16);
}

async function renderTemplate(file: AgentFile, options: { given: Record<string, unknown>; check: boolean }): Promise<string> {
  const { Dotprompt, picoschema } = await import("dotprompt");
  const input = { ...(file.frontmatter.input?.default ?? {}), ...options.given };
  const cannot = (what: string, error: unknown) =>
    new CaissonError("invalid", `${file.path}: ${what}: ${error instanceof Error ? error.message.slice(0, 500) : error}`, { cause: error });
  const schema = file.frontmatter.input?.schema;
  if (schema !== undefined) {
    const json = await picoschema(schema).catch((error: unknown) => {
      throw cannot("input.schema is not a schema", error);
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
    throw cannot("the template cannot be rendered", error);
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
    each.unknown === undefined ? each : { ...each, text: `there is no input ${each.unknown.key}` },
  );
  throw new CaissonError("invalid", `${file.path}: the agent's inputs do not fit: ${tellProblems(problems)}`, {
    hint: `It takes ${properties.map(([name]) => name).join(", ")}; give each with --input NAME=VALUE.`,
  });
}

/** On a command line everything is text. */
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

function sandboxSettings(file: AgentFile) {
  const { frontmatter } = file;
  const fromHarness = typeof frontmatter.harness === "object" ? frontmatter.harness.sandbox : undefined;
  const sandbox = { ...frontmatter.harness_config?.sandbox, ...fromHarness, ...frontmatter.sandbox };
  const image = sandbox.image ?? (sandbox.template === "host" ? undefined : sandbox.template);
  return {
    ...optional({ runtime: sandbox.mode, image }),
    allowRoot: sandbox.allow_root ?? false,
    env: sandbox.environment ?? {},
    network: saidBy(file, "sandbox.network", () => policyOf(sandbox.network)),
    secrets: saidBy(file, "sandbox.secrets", () => secretsOf(Array.isArray(sandbox.secrets) ? {} : sandbox.secrets)),
    secretNames: Array.isArray(sandbox.secrets) ? sandbox.secrets : [],
    ...(sandbox.gateway === undefined ? {} : { gateway: Array.isArray(sandbox.gateway) ? { wires: sandbox.gateway } : sandbox.gateway }),
    limits: optional({
      cpus: sandbox.cpu === undefined ? undefined : Number(sandbox.cpu),
      memoryBytes: sandbox.memory === undefined ? undefined : bytesFrom(String(sandbox.memory)),
      diskBytes: sandbox.disk === undefined ? undefined : bytesFrom(String(sandbox.disk)),
      pids: sandbox.pids,
      wallClockMs: sandbox.timeout === undefined ? undefined : durationFrom(String(sandbox.timeout)),
    }),
  };
}

/** Some files of other systems say it by a switch and a list of hosts. */
function policyOf(network: NonNullable<Frontmatter["sandbox"]>["network"]): NetworkPolicy {
  if (network === undefined || network === false) return parsePolicy([]);
  if (network === true) return parsePolicy(["open"]);
  if (typeof network === "string") return parsePolicy([network]);
  if (Array.isArray(network)) return parsePolicy(network);
  const hosts = network.allowed_hosts ?? [];
  if (network.enabled === false) return parsePolicy([]);
  return parsePolicy(hosts.length === 0 && network.enabled === true ? ["open"] : hosts);
}

type SecretTable = Exclude<NonNullable<Frontmatter["sandbox"]>["secrets"], readonly string[]>;

function secretsOf(secrets: SecretTable = {}): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(secrets).map(([name, secret]) => [name, typeof secret === "string" ? parseSecret(`${name}@${secret}`).spec : secret]),
  );
}

/** An error that names the file and the place in it. */
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

/** YAML takes a bare `on` for a word, and `true` for a switch. */
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
