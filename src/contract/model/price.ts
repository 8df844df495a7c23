import { z } from "zod";

/** Prices in US dollars per million tokens, and the context window. */
export const Price = z.lazy(() =>
  z.strictObject({
    inputUsd: z.number().nonnegative(),
    cachedInputUsd: z.number().nonnegative().optional(),
    /** Price of tokens written to the provider's cache; absent: the same as other input. */
    cacheWriteUsd: z.number().nonnegative().optional(),
    outputUsd: z.number().nonnegative(),
    contextTokens: z.int().positive().optional(),
  }),
);
export type Price = z.infer<typeof Price>;
export const PriceTable = z.record(z.string(), Price);
export type PriceTable = z.infer<typeof PriceTable>;
