import type { Denial } from "./denial.ts";
import { makeDenial } from "./denial.ts";
import { createDenialLog } from "./denial-log.ts";
import { createDialer } from "./dial.ts";
import { type EgressLimits, egressLimits } from "./egress-limits.ts";
import type { EgressOptions, EgressSecrets, Emit } from "./egress-options.ts";
import { createOncePerWindow, type OncePerWindow } from "./once-per-window.ts";
import { createPassages, type PassageContext } from "./passages.ts";
import type { Repeats } from "./repeats.ts";
import { createResolver } from "./resolve.ts";

/** The state that the parts of one sandbox's egress share. */
export interface EgressContext extends PassageContext {
  denials: Repeats<Denial>;
  secrets: EgressSecrets;
  authority: EgressOptions["authority"];
  mirror: EgressOptions["mirror"];
  limits: EgressLimits;
  emit: Emit;
  /**
   * Deduplicates events about secrets: a program that makes a thousand requests a second has still only used one
   * secret.
   */
  checkRepeated: OncePerWindow;
  /** Every secret that was ever sent. Any host that may receive secrets could return it in a later answer. */
  sentSecrets: Set<string>;
}

export function createEgressContext(options: EgressOptions): EgressContext {
  const { policy, emit, howToAsk } = options;
  const limits = { ...egressLimits, ...options.limits };
  const denials = createDenialLog({ emit, windowMs: limits.denialWindowMs, differentMax: limits.denialsMax });
  return {
    policy,
    denials,
    secrets: options.secrets,
    authority: options.authority,
    mirror: options.mirror,
    limits,
    resolver: createResolver({ resolve: options.resolve, ownAddresses: options.ownAddresses, limits }),
    dialer: createDialer({ upstreamCa: options.upstreamCa, limits }),
    passages: createPassages({ emit }),
    emit,
    deny(attempt, refusal) {
      const denial = makeDenial({ attempt, refusal, policy: policy(), howToAsk });
      denials.add(denial);
      return denial;
    },
    checkRepeated: createOncePerWindow({ windowMs: limits.denialWindowMs, differentMax: limits.denialsMax }),
    sentSecrets: new Set(),
  };
}
