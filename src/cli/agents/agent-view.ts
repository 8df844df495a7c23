import type { AgentDefinition } from "../../contract/agent/agent.ts";
import { showPolicy } from "../../contract/network/network-text.ts";
import { showBytes, showDuration } from "../../lib/quantity.ts";
import { bold, dim, type Line, line, lines } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

/** Formats an agent for people: its instructions, tools and rights. Leaves out defaults. */
export function agentLines(agent: AgentDefinition): Line[] {
  const { harness, sandbox, hooks, workspace } = agent;
  const rows: [string, string][] = [
    ["model", agent.model ?? "the one you choose"],
    ["tools", agent.tools === undefined ? "all built-in ones" : agent.tools.join(", ")],
    ["sub-agents", agent.agents.join(", ")],
    ["MCP servers", Object.keys(agent.mcp).join(", ")],
    ["bounds", `${harness.maxSteps} steps, ${showDuration(harness.timeoutMs)} of work`],
    ["permissions", rulesText(agent.permissions)],
    [
      "hooks",
      [...hooks.before.map(({ command }) => `before: ${command}`), ...hooks.after.map(({ command }) => `after: ${command}`)].join("; "),
    ],
    ["runtime", sandbox.runtime ?? ""],
    ["image", sandbox.image ?? ""],
    ["template", sandbox.template ?? ""],
    ["limits", limitsText(sandbox.limits)],
    ["network", showPolicy(sandbox.network)],
    ["secrets", [...new Set([...Object.keys(sandbox.secrets), ...sandbox.secretNames])].join(", ")],
    ["variables", Object.keys(sandbox.env).join(", ")],
    ["root inside", sandbox.allowRoot ? "allowed" : ""],
    ["workspace", workspace.scope === "run" ? "" : `the ${workspace.scope}'s`],
    ["memory", agent.memory.join(", ")],
    ["skills", agent.skills.join(", ")],
  ];
  return [
    line`${bold(agent.name)}${agent.description === "" ? "" : line`: ${agent.description}`}`,
    ...table(rows.filter(([, value]) => value !== "").map(([name, value]) => [dim(`  ${name}`), value])),
    line``,
    dim("Instructions:"),
    ...lines(agent.system).map((row) => line`  ${row}`),
  ];
}

const rulesText = (rules: AgentDefinition["permissions"]): string =>
  Object.entries(rules)
    .map(([pattern, permission]) => `${permission} ${pattern}`)
    .join("; ");

function limitsText({ cpus, memoryBytes, pids, diskBytes, wallClockMs, outputBytes }: AgentDefinition["sandbox"]["limits"]): string {
  const parts = [
    cpus === undefined ? "" : `${cpus} processors`,
    memoryBytes === undefined ? "" : `${showBytes(memoryBytes)} of memory`,
    pids === undefined ? "" : `${pids} processes`,
    diskBytes === undefined ? "" : `${showBytes(diskBytes)} on disk`,
    wallClockMs === undefined ? "" : `${showDuration(wallClockMs)} per command`,
    outputBytes === undefined ? "" : `${showBytes(outputBytes)} of output per command`,
  ];
  return parts.filter((each) => each !== "").join(", ");
}
