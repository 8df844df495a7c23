import { createResolver } from "../address/resolve.ts";
import { makeDenial } from "./denial.ts";
import { createDenialLog } from "./denial-log.ts";
import { createDialer } from "./dial.ts";
import type { EgressContext } from "./egress-context.ts";
import { egressLimits } from "./egress-limits.ts";
import type { Egress, EgressOptions } from "./egress-options.ts";
import { createFakeNames } from "./fake-names.ts";
import { createFetch } from "./fetch.ts";
import { createOncePerWindow } from "./once-per-window.ts";
import { createPassages } from "./passages.ts";
import { createProxy } from "./proxy.ts";

export type { Egress, EgressOptions } from "./egress-options.ts";

/** The way out of one sandbox: everything that leaves it is decided, resolved, connected and counted here. */
export function createEgress(options: EgressOptions): Egress {
  const { policy, emit, howToAsk } = options;
  const limits = { ...egressLimits, ...options.limits };
  const denials = createDenialLog({ emit, windowMs: limits.denialWindowMs, differentMax: limits.denialsMax });
  const context: EgressContext = {
    policy,
    secrets: options.secrets,
    authority: options.authority,
    mirror: options.mirror,
    limits,
    resolver: createResolver({ resolve: options.resolve, ownAddresses: options.ownAddresses, limits }),
    dialer: createDialer({ upstreamCa: options.upstreamCa, limits }),
    passages: createPassages({ emit }),
    emit,
    deny(asked, refusal) {
      const denial = makeDenial({ asked, refusal, policy: policy(), howToAsk });
      denials.add(denial);
      return denial;
    },
    toldInWindow: createOncePerWindow({ windowMs: limits.denialWindowMs, differentMax: limits.denialsMax }),
    sentSecrets: new Set(),
  };
  const names = createFakeNames({ namesMax: limits.namesMax });
  const proxy = createProxy(context, names);
  const fetching = createFetch(context);
  return {
    handle: proxy.handle,
    answerName: names.answerName,
    fetch: fetching.fetch,
    enforce: () => context.passages.enforce(policy(), options.secrets),
    settle: () => denials.flush(),
    async close() {
      fetching.close();
      context.passages.destroyAll();
      await proxy.close();
      denials.flush();
    },
    stats() {
      const { sent, received } = context.passages.bytes();
      return { connections: proxy.connections(), sentBytes: sent, receivedBytes: received };
    },
  };
}
