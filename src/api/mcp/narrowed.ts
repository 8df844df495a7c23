import { runRoutes } from "../../contract/api/run-routes.ts";
import { sandboxRoutes } from "../../contract/api/sandbox-routes.ts";
import { defaultLimits } from "../../contract/default-limits.ts";
import { CaissonError } from "../../contract/error.ts";
import type { McpBounds } from "../../contract/mcp-bounds.ts";
import type { NetworkPolicy } from "../../contract/network.ts";
import { parsePolicy, showPolicy } from "../../contract/network-text.ts";
import { beyondPolicy } from "../../contract/policy-within.ts";
import type { LimitsRequest } from "../../contract/sandbox.ts";

/** The network that a model asks for, in words. Throws `invalid`, `denied` for what goes beyond the bounds. */
export function narrowedNetwork(words: readonly string[], { most }: Pick<McpBounds, "most">): NetworkPolicy {
  const asked = parsePolicy(words);
  if (most === null) return asked;
  const beyond = beyondPolicy(asked, most);
  if (beyond !== null) {
    throw new CaissonError("denied", `the network may be ${showPolicy(most)} at most, and ${beyond} is more`, {
      hint: "Ask for less, or ask the person to start `caisson mcp` with --network.",
    });
  }
  return asked.mode !== "none" && most.mode !== "none" ? { ...asked, transparent: most.transparent } : asked;
}

/** Throws `denied` for limits above those that the person set, or the usual ones. */
export function narrowedLimits(asked: LimitsRequest, { sandbox, most }: Pick<McpBounds, "sandbox" | "most">): LimitsRequest {
  const given: LimitsRequest = sandbox.spec.limits;
  if (most !== null) {
    for (const [name, value] of Object.entries(asked) as [keyof LimitsRequest, number][]) {
      const limit = given[name] ?? (defaultLimits as LimitsRequest)[name];
      if (limit === undefined || value <= limit) continue;
      throw new CaissonError("denied", `the limit ${name} may be ${limit} at most`, { hint: "Ask for less." });
    }
  }
  return { ...given, ...asked };
}

/** A model may not name anything of the machine, whoever lets it talk to the station. Throws `denied`, `invalid`. */
export function checkModelsSandbox(wishes: Record<string, unknown>): void {
  const { body, reaches } = sandboxRoutes["sandboxes.create"];
  refuseReach(reaches(body.parse(wishes)));
}

/** The same for a run. */
export function checkModelsRun(wishes: Record<string, unknown>): void {
  const { body, reaches } = runRoutes["runs.start"];
  refuseReach(reaches(body.parse(wishes)));
}

function refuseReach(reached: readonly string[]): void {
  if (reached.length === 0) return;
  throw new CaissonError("denied", `a model may not reach the station's machine, and this names ${reached.join(", ")}`);
}

/** Throws `denied` where the model may not choose it. */
export function checkChoice(what: string, value: unknown, { choosesTemplate }: Pick<McpBounds, "choosesTemplate">): void {
  if (value === undefined || choosesTemplate) return;
  throw new CaissonError("denied", `${what} is the person's to choose here`, {
    hint: `Leave it out, or ask the person to start \`caisson mcp\` with it.`,
  });
}
