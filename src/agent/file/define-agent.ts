import { createHash } from "node:crypto";
import { basename } from "node:path";
import { AgentDefinition } from "../../contract/agent.ts";
import { CaissonError } from "../../contract/error.ts";
import { bytesFrom, durationFrom } from "../../lib/quantity.ts";
import type { Frontmatter } from "./frontmatter.ts";
import type { AgentFile } from "./parse-agent-file.ts";

/** Renders the file's template and puts the settings into the form the loop uses. Throws `invalid` for an input or a value that does not fit. */
export async function defineAgent(file: AgentFile, options: { input?: Record<string, unknown> } = {}): Promise<AgentDefinition> {
  const { frontmatter } = file;
  const parsed = AgentDefinition.safeParse({
    name: frontmatter.name ?? basename(file.path).replace(/\.prompt$/, ""),
    description: frontmatter.description ?? "",
    ...optional({ model: frontmatter.model, tools: frontmatter.tools }),
    agents: frontmatter.agents ?? [],
    system: await renderTemplate(file, options.input ?? {}),
    ...optional({ temperature: frontmatter.config?.temperature, outputTokensMax: frontmatter.config?.maxOutputTokens }),
    harness: harnessSettings(file),
    permissions: frontmatter.permissions ?? {},
    hooks: frontmatter.hooks ?? {},
    mcp: frontmatter.mcp ?? {},
    sandbox: sandboxSettings(file),
    workspace: frontmatter.workspace ?? {},
    skills: sources(frontmatter.skills) ?? [],
    memory: sources(frontmatter.memory) ?? ["AGENTS.md"],
  });
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new CaissonError("invalid", `${file.path}: ${issue?.path.join(".")}: ${issue?.message}`);
}

/** What a run's log keeps of the definition, so that it can be told whether a file changed since. */
export function digestOf(definition: AgentDefinition): string {
  return createHash("sha256").update(JSON.stringify(definition)).digest("hex").slice(0, 16);
}

async function renderTemplate(file: AgentFile, input: Record<string, unknown>): Promise<string> {
  const { Dotprompt } = await import("dotprompt");
  try {
    const rendered = await new Dotprompt().render(file.source, { input: { ...(file.frontmatter.input?.default ?? {}), ...input } });
    return rendered.messages
      .flatMap((message) => message.content.map((part) => ("text" in part && typeof part.text === "string" ? part.text : "")))
      .join("\n")
      .trim();
  } catch (error) {
    throw new CaissonError(
      "invalid",
      `${file.path}: the template cannot be rendered: ${error instanceof Error ? error.message.slice(0, 500) : error}`,
      {
        cause: error,
      },
    );
  }
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
      timeoutMs: timeout === undefined ? undefined : duration(file, "timeout", timeout),
      retries: config.retries ?? harness.retries,
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
  refuseNetwork(file, sandbox.network);
  const image = sandbox.image ?? (sandbox.template === "host" ? undefined : sandbox.template);
  return {
    ...optional({ runtime: sandbox.mode, image }),
    allowRoot: sandbox.allow_root ?? false,
    env: sandbox.environment ?? {},
    limits: optional({
      cpus: sandbox.cpu === undefined ? undefined : Number(sandbox.cpu),
      memoryBytes: sandbox.memory === undefined ? undefined : size(file, "memory", sandbox.memory),
      diskBytes: sandbox.disk === undefined ? undefined : size(file, "disk", sandbox.disk),
      pids: sandbox.pids,
      wallClockMs: sandbox.timeout === undefined ? undefined : duration(file, "sandbox.timeout", sandbox.timeout),
    }),
  };
}

/** A network that cannot be given is refused, not left out. */
function refuseNetwork(file: AgentFile, network: NonNullable<Frontmatter["sandbox"]>["network"]): void {
  const wanted =
    network === true || (typeof network === "object" && (network.enabled === true || (network.allowed_hosts?.length ?? 0) > 0));
  if (!wanted) return;
  throw new CaissonError("unsupported", `${file.path}: sandbox.network asks for a network; only none can be enforced yet.`, {
    hint: "Set sandbox.network to none.",
  });
}

function sources(value: Frontmatter["skills"]): string[] | undefined {
  return Array.isArray(value) ? value : value?.sources;
}

function duration(file: AgentFile, key: string, value: string | number): number {
  return durationFrom(String(value)) ?? doesNotFit(file, key, value, "a duration such as 30s or 5m");
}

function size(file: AgentFile, key: string, value: string | number): number {
  return bytesFrom(String(value)) ?? doesNotFit(file, key, value, "a size such as 512m or 4g");
}

function doesNotFit(file: AgentFile, key: string, value: string | number, wanted: string): never {
  throw new CaissonError("invalid", `${file.path}: ${key}: ${JSON.stringify(value)} is not ${wanted}.`);
}

function optional<Values extends Record<string, unknown>>(values: Values): { [Key in keyof Values]?: Exclude<Values[Key], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [Key in keyof Values]?: Exclude<Values[Key], undefined>;
  };
}
