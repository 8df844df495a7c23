import type { z } from "zod";
import { CaissonError } from "./error.ts";
import { checkValue, tellProblems } from "./plain-problems.ts";

/**
 * The argument of a verb, checked and complete. `what` is a thing ("a run") or a deed ("to apply"). Throws `invalid`
 * with what is wrong where.
 */
export function parseRequest<Schema extends z.ZodType>(schema: Schema, given: unknown, what: string): z.output<Schema> {
  const parsed = checkValue(schema, given);
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", `invalid request ${what.startsWith("to ") ? "" : "for "}${what}: ${tellProblems(parsed.problems)}`);
}
