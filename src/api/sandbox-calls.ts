import { CaissonError } from "../contract/error/error.ts";
import type { SandboxId } from "../contract/ids.ts";
import { insideRates } from "../contract/inside/inside-verbs.ts";
import type { RouteName } from "../verbs/routes.ts";
import { createRates } from "./rates.ts";

type Kind = keyof typeof insideRates;

const kinds: Partial<Record<RouteName, Kind>> = {
  "inside.report": "events",
  "inside.takeMessages": "polls",
  "inside.beat": "heartbeats",
};

export interface SandboxCalls {
  /** Counts a call with a sandbox's token. Throws `busy` above the limit per minute. */
  count(sandbox: SandboxId, name: RouteName | null): void;
}

/**
 * Limits how often the programs in one sandbox may make each kind of call. Calls that are refused for another reason
 * count as well.
 */
export function createSandboxCalls(options: { now?: () => number } = {}): SandboxCalls {
  const entries = Object.entries(insideRates) as [Kind, number][];
  const rates = Object.fromEntries(entries.map(([kind, perMinute]) => [kind, createRates({ perMinute, ...options })]));
  return {
    count(sandbox, name) {
      const kind = (name === null ? undefined : kinds[name]) ?? "others";
      const rate = rates[kind]?.take(sandbox);
      if (rate === undefined || rate.ok) return;
      throw new CaissonError("busy", `the sandbox may make only ${insideRates[kind]} of these calls per minute`, {
        hint: `Try again in ${rate.retryAfterSeconds} s.`,
        details: { retryAfterSeconds: rate.retryAfterSeconds },
      });
    },
  };
}
