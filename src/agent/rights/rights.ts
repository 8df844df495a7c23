import type { AgentDefinition, SubAgentDefinition } from "../../contract/agent/agent.ts";
import type { AgentDefaults } from "../../contract/agent/agent-defaults.ts";
import { HarnessSettings } from "../../contract/harness/harness.ts";
import {
  above,
  judgeSettings,
  narrows,
  type RequestedRight,
  type RightJudges,
  type UsualBounds,
} from "../../contract/sandbox/field-rights.ts";
import { rightsOfFields } from "../../contract/sandbox/sandbox-fields.ts";
import { visible, visibleWords } from "../../contract/visible-text.ts";
import { defaultAgent, usualBounds } from "../file/agent-defaults.ts";
import { defaultPermissions } from "../permissions.ts";
import { wideningRules } from "./permission-rights.ts";

/** A right that an agent file requests in addition to the rights of every file. */
export interface Right {
  /** The setting of the agent's definition, such as `sandbox.network`. */
  field: string;
  /** Always one line of printable ASCII, even if the file contains other characters. */
  text: string;
  /** Why the user cannot grant this right to a file. */
  never?: string;
}

/**
 * Returns the rights that a definition requests in addition to those of the default agent. Rights that the user's
 * configuration gives to every agent do not count as requests of the file.
 */
export function rightsBeyond(definition: AgentDefinition, defaults: AgentDefaults, limits: UsualBounds["limits"]): Right[] {
  const usual = usualBounds(defaults, limits);
  const idOf = ({ field, text }: Right) => `${field}: ${text}`;
  const had = new Set(rightsOf(defaultAgent(defaults), usual).map(idOf));
  return rightsOf(definition, usual).filter((right) => !had.has(idOf(right)));
}

/**
 * Returns all settings of a definition that widen what an agent may do. Without such settings, even an untrusted file
 * may run.
 */
export function rightsOf(definition: AgentDefinition, usual: UsualBounds): Right[] {
  return judgeSettings<AgentDefinition>({ ...ofOneAgent, subAgents: ofSubAgents })(definition, usual).map(({ field = "", ...right }) => ({
    field,
    ...right,
  }));
}

const builtIn = HarnessSettings.parse({});

const ofOneAgent: RightJudges<SubAgentDefinition> = {
  name: narrows,
  description: narrows,
  model: (model) => [{ text: `ask the model ${visible(model)}, with your key and at your cost` }],
  tools: narrows,
  // Each sub-agent is a separate file. We check its rights when we load it.
  agents: narrows,
  system: narrows,
  temperature: narrows,
  // The provider's own maximum applies in any case.
  outputTokensMax: narrows,
  harness: judgeSettings<HarnessSettings>({
    maxSteps: above("steps", ({ harness = builtIn }) => harness.maxSteps),
    timeoutMs: above("milliseconds of work", ({ harness = builtIn }) => harness.timeoutMs),
    onBudget: narrows,
    onAsk: narrows,
    doomLoop: judgeSettings<HarnessSettings["doomLoop"]>({
      threshold: above("repetitions before it counts as a loop", ({ harness = builtIn }) => harness.doomLoop.threshold),
      action: (action) => (action === "summarize" ? [{ text: "continue after a loop without asking" }] : []),
    }),
    compaction: narrows,
    retries: above("retries of a model call", ({ harness = builtIn }) => harness.retries),
    onOutage: narrows,
  }),
  permissions: (rules, usual) =>
    wideningRules(rules, { ...defaultPermissions, ...usual.permissions }).map(([pattern, permission]) => ({
      text: `${permission === "allow" ? "do without asking" : "do after asking, although denied by default"}: ${visible(pattern)}`,
    })),
  floor: narrows,
  guardian: ({ enabled, atMost }) => [
    ...(enabled === false ? [{ text: "work without the guardian" }] : []),
    ...(atMost === undefined || atMost === "stop" ? [] : [{ text: `limit the guardian to at most: ${atMost}` }]),
  ],
  hooks: ({ before, after }) =>
    [...before.map((hook) => ({ when: "before", hook })), ...after.map((hook) => ({ when: "after", hook }))].map(({ when, hook }) => ({
      text: `run in the sandbox ${when} ${hook.tools === undefined ? "each tool" : visible(hook.tools.join(", "))}: ${visible(hook.command)}`,
    })),
  mcp: (servers) =>
    Object.entries(servers).map(([name, { command, args, env }]) => ({
      text: `start in the sandbox, as the MCP server ${name}: ${visibleWords([...Object.entries(env).map((pair) => pair.join("=")), command, ...args])}`,
    })),
  sandbox: judgeSettings<AgentDefinition["sandbox"]>(rightsOfFields),
  workspace: narrows,
  skills: narrows,
  memory: narrows,
};

function ofSubAgents(agents: Record<string, SubAgentDefinition>, usual: UsualBounds): RequestedRight[] {
  return Object.entries(agents).flatMap(([name, agent]) =>
    judgeSettings<SubAgentDefinition>(ofOneAgent)(agent, usual).map((right) => ({ ...right, text: `${visible(name)}: ${right.text}` })),
  );
}
