import type { McpBounds } from "../../contract/api/mcp-bounds.ts";
import { defaultLimits } from "../../contract/defaults/default-limits.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { NetworkPolicy } from "../../contract/network/network.ts";
import { parsePolicy, showPolicy } from "../../contract/network/network-text.ts";
import { beyondPolicy } from "../../contract/network/policy-within.ts";
import type { LimitsRequest } from "../../contract/sandbox/sandbox-fields.ts";
import { runs } from "../../verbs/runs.ts";
import { sandboxes } from "../../verbs/sandboxes.ts";

/** Parses the network that a model requests. Throws `invalid`, and `denied` for what exceeds the person's limits. */
export function narrowedNetwork(words: readonly string[], { most }: Pick<McpBounds, "most">): NetworkPolicy {
  const policy = parsePolicy(words);
  if (most === null) return policy;
  const beyond = beyondPolicy(policy, most);
  if (beyond !== null) {
    throw new CaissonError("denied", `the network may be at most ${showPolicy(most)}, and ${beyond} exceeds it`, {
      hint: "Request less, or ask the person to start `caisson mcp` with --network.",
    });
  }
  return policy.mode !== "none" && most.mode !== "none" ? { ...policy, transparent: most.transparent } : policy;
}

/** Throws `denied` for limits above the person's, or above the defaults. */
export function narrowedLimits(limits: LimitsRequest, { sandbox, most }: Pick<McpBounds, "sandbox" | "most">): LimitsRequest {
  const bounds: LimitsRequest = sandbox.spec.limits;
  if (most !== null) {
    for (const [name, value] of Object.entries(limits) as [keyof LimitsRequest, number][]) {
      const limit = bounds[name] ?? (defaultLimits as LimitsRequest)[name];
      if (limit === undefined || value <= limit) continue;
      throw new CaissonError("denied", `the limit ${name} may be at most ${limit}`, { hint: "Request less." });
    }
  }
  return { ...bounds, ...limits };
}

/** Throws `denied` if a model names anything on the station's machine, whatever its caller may do. Throws `invalid`. */
export function checkModelsSandbox(wishes: Record<string, unknown>): void {
  const { body, reaches } = sandboxes.create;
  refuseReach(reaches(body.parse(wishes)));
}

/** Does the same for a run. */
export function checkModelsRun(wishes: Record<string, unknown>): void {
  const { body, reaches } = runs.start;
  refuseReach(reaches(body.parse(wishes)));
}

function refuseReach(reached: readonly string[]): void {
  if (reached.length === 0) return;
  throw new CaissonError("denied", `a model may not access the station's machine: ${reached.join(", ")}`);
}

/** Throws `denied` if the model may not choose this. */
export function checkChoice(what: string, value: unknown, { choosesTemplate }: Pick<McpBounds, "choosesTemplate">): void {
  if (value === undefined || choosesTemplate) return;
  throw new CaissonError("denied", `only the person may choose ${what} here`, {
    hint: `Omit it, or ask the person to start \`caisson mcp\` with it.`,
  });
}
