import { expect, test } from "vitest";
import { z } from "zod";
import { checkValue, tellProblems } from "./plain-problems.ts";

test("reports an unknown name in a value with several forms", () => {
  const schema = z.object({
    source: z.discriminatedUnion("kind", [
      z.strictObject({ kind: z.literal("empty") }),
      z.strictObject({ kind: z.literal("folder"), hiding: z.strictObject({ hide: z.string() }) }),
    ]),
  });
  const checked = checkValue(schema, { source: { kind: "folder", hiding: { hide: "x", toString: 1 } } });
  expect(checked.success).toBe(false);
  if (!checked.success) expect(tellProblems(checked.problems)).toBe('source.hiding has no setting "toString" (known: hide)');
});
