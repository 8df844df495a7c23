import type { Price, PriceTable } from "../../contract/model/price.ts";
import type { Usage } from "../../contract/model/usage.ts";

export const CONTEXT_TOKENS_DEFAULT = 128_000;

/**
 * List prices by the prefix of a model's name; the longest match counts. They become outdated, so a user's own table
 * takes precedence. A model in neither table has an unknown cost.
 */
export const listPrices: PriceTable = {
  "anthropic/claude-opus": { inputUsd: 5, cachedInputUsd: 0.5, cacheWriteUsd: 6.25, outputUsd: 25, contextTokens: 200_000 },
  "anthropic/claude-sonnet": { inputUsd: 3, cachedInputUsd: 0.3, cacheWriteUsd: 3.75, outputUsd: 15, contextTokens: 200_000 },
  "anthropic/claude-haiku": { inputUsd: 1, cachedInputUsd: 0.1, cacheWriteUsd: 1.25, outputUsd: 5, contextTokens: 200_000 },
  "openai/gpt-5": { inputUsd: 1.25, cachedInputUsd: 0.125, outputUsd: 10, contextTokens: 400_000 },
  "openai/gpt-5-mini": { inputUsd: 0.25, cachedInputUsd: 0.025, outputUsd: 2, contextTokens: 400_000 },
  "openai/gpt-4.1": { inputUsd: 2, cachedInputUsd: 0.5, outputUsd: 8, contextTokens: 1_000_000 },
  "openai/gpt-4o": { inputUsd: 2.5, cachedInputUsd: 1.25, outputUsd: 10, contextTokens: 128_000 },
  "google/gemini-2.5-pro": { inputUsd: 1.25, cachedInputUsd: 0.31, outputUsd: 10, contextTokens: 1_000_000 },
  "google/gemini-2.5-flash": { inputUsd: 0.3, cachedInputUsd: 0.075, outputUsd: 2.5, contextTokens: 1_000_000 },
};

export function findPrice(model: string, own: PriceTable = {}): Price | null {
  return longestMatch(own, model) ?? longestMatch(listPrices, model);
}

export function costOf(usage: Usage & { cacheWriteInputTokens?: number }, price: Price | null): number | null {
  if (!price) return null;
  const written = usage.cacheWriteInputTokens ?? 0;
  const fresh = Math.max(0, usage.inputTokens - usage.cachedInputTokens - written);
  return (
    (fresh * price.inputUsd +
      written * (price.cacheWriteUsd ?? price.inputUsd) +
      usage.cachedInputTokens * (price.cachedInputUsd ?? price.inputUsd) +
      usage.outputTokens * price.outputUsd) /
    1e6
  );
}

function longestMatch(table: PriceTable, model: string): Price | null {
  const keys = Object.keys(table).filter((key) => model.startsWith(key));
  keys.sort((a, b) => b.length - a.length);
  return (keys[0] !== undefined && table[keys[0]]) || null;
}
