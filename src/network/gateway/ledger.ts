import { CaissonError } from "../../contract/error/error.ts";
import type { GatewayConfig } from "../../contract/network/network.ts";
import { waitTurn } from "./call-slots.ts";
import type { GatewayOptions } from "./gateway-options.ts";

export interface Amount {
  costUsd: number;
  tokens: number;
}

export interface Reservation extends Disposable {
  /** Replaces the reserved amount with the real one. */
  settle(real: Amount): void;
}

export interface Ledger {
  /** Throws `denied` if a limit is reached. */
  check(): void;
  /** Whether the cost is limited, so that a model of unknown price must be refused. */
  costIsBounded(): boolean;
  /**
   * Reserves an amount for a call. If a limit is not yet reached but the reservations of running calls use up the rest,
   * waits for those calls. Parallel calls therefore exceed a limit by no more than the last of them alone would. Throws
   * `denied` if a limit is reached, `busy` after the wait, `cancelled`.
   */
  reserve(amount: Amount, signal: AbortSignal): Promise<Reservation>;
}

interface Bound {
  left: number;
  reserved: number;
  why: string;
}

/** Tracks the amounts spent and reserved. */
export function createLedger(
  options: Pick<GatewayOptions, "readSpent" | "budget" | "howToRaise"> & { config: GatewayConfig; waitingMs: number },
): Ledger {
  const before = options.readSpent();
  const own: Amount = { costUsd: 0, tokens: 0 };
  const reserved: Amount = { costUsd: 0, tokens: 0 };
  const waiting = new Set<() => void>();

  /** The log may lag behind this gateway's own calls, or be ahead because of others. */
  const readSpending = (): Amount => {
    const logged = options.readSpent();
    return { costUsd: Math.max(logged.costUsd, before.costUsd + own.costUsd), tokens: Math.max(logged.tokens, before.tokens + own.tokens) };
  };
  const bounds = (): Bound[] => {
    const { costUsdMax, tokensMax } = options.config;
    const now = readSpending();
    const left = options.budget?.() ?? { costUsdLeft: null, tokensLeft: null };
    const list: Bound[] = [];
    const cost = (value: number, why: string) => list.push({ left: value, reserved: reserved.costUsd, why });
    const tokens = (value: number, why: string) => list.push({ left: value, reserved: reserved.tokens, why });
    if (costUsdMax !== undefined) {
      cost(costUsdMax - now.costUsd, `this sandbox's calls have cost $${now.costUsd.toFixed(4)}; the gateway's limit is $${costUsdMax}`);
    }
    if (tokensMax !== undefined)
      tokens(tokensMax - now.tokens, `this sandbox has used ${now.tokens} tokens; the gateway's limit is ${tokensMax}`);
    const ran = `it spent $${now.costUsd.toFixed(4)} and ${now.tokens} tokens through the gateway`;
    if (left.costUsdLeft !== null) cost(left.costUsdLeft, `the run's cost budget is used up; ${ran}`);
    if (left.tokensLeft !== null) tokens(left.tokensLeft, `the run's token budget is used up; ${ran}`);
    return list;
  };
  const check = () => {
    const reached = bounds().find(({ left }) => left <= 0);
    if (reached) throw spentError(reached.why, options.howToRaise);
  };
  const setAside = (amount: Amount): Reservation => {
    add(reserved, amount, 1);
    let held = true;
    const release = () => {
      if (!held) return;
      held = false;
      add(reserved, amount, -1);
      // Each waiting call checks in order whether it fits now.
      for (const tryNow of [...waiting]) tryNow();
    };
    return {
      settle(real) {
        add(own, real, 1);
        release();
      },
      [Symbol.dispose]: release,
    };
  };
  const ready = (amount: Amount) => () => {
    check();
    return bounds().every((bound) => bound.left - bound.reserved > 0) ? setAside(amount) : null;
  };
  return {
    check,
    costIsBounded: () => options.config.costUsdMax !== undefined || (options.budget?.().costUsdLeft ?? null) !== null,
    async reserve(amount, signal) {
      const now = waiting.size === 0 ? ready(amount)() : null;
      return now ?? (await waitTurn({ waiting, signal, timeoutMs: options.waitingMs, ready: ready(amount) }));
    },
  };
}

function add(to: Amount, amount: Amount, sign: 1 | -1): void {
  to.costUsd += sign * amount.costUsd;
  to.tokens += sign * amount.tokens;
}

function spentError(why: string, howToRaise: string | undefined): CaissonError {
  return new CaissonError("denied", why, {
    hint: howToRaise ?? "Ask a person to raise the limit from outside the sandbox. Trying again does not help.",
    details: { openaiCode: "insufficient_quota" },
  });
}
