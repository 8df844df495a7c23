import type { RouteName } from "../contract/api/paths.ts";
import { CaissonError } from "../contract/error.ts";
import type { SandboxId } from "../contract/ids.ts";
import { insideRates } from "../contract/inside-verbs.ts";
import { createRates } from "./rates.ts";

type Kind = keyof typeof insideRates;

const kinds: Partial<Record<RouteName, Kind>> = {
  "inside.report": "events",
  "inside.takeMessages": "polls",
  "inside.beat": "heartbeats",
};

export interface SandboxCalls {
  /** Counts a call of a sandbox's token. Throws `busy` for one too many within a minute. */
  count(sandbox: SandboxId, name: RouteName | null): void;
}

/** How often the programs in one sandbox may call, of each kind; what is refused for another reason counts, too. */
export function createSandboxCalls(options: { now?: () => number } = {}): SandboxCalls {
  const entries = Object.entries(insideRates) as [Kind, number][];
  const rates = Object.fromEntries(entries.map(([kind, perMinute]) => [kind, createRates({ perMinute, ...options })]));
  return {
    count(sandbox, name) {
      const kind = (name === null ? undefined : kinds[name]) ?? "others";
      const taken = rates[kind]?.take(sandbox);
      if (taken === undefined || taken.ok) return;
      throw new CaissonError("busy", `the sandbox may make ${insideRates[kind]} such calls a minute`, {
        hint: `Try again in ${taken.retryAfterSeconds} s.`,
        details: { retryAfterSeconds: taken.retryAfterSeconds },
      });
    },
  };
}
