import { z } from "zod";

export const Usage = z.object({
  inputTokens: z.int().nonnegative(),
  outputTokens: z.int().nonnegative(),
  cachedInputTokens: z.int().nonnegative().default(0),
  reasoningTokens: z.int().nonnegative().default(0),
});
export type Usage = z.infer<typeof Usage>;
