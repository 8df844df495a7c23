import type { z } from "zod";
import { CaissonError } from "./error.ts";
import { checkValue, tellProblems } from "./plain-problems.ts";

/**
 * Parses the argument of a verb and fills in defaults. `what` is a thing ("a run") or an action ("to apply"). Throws
 * `invalid` with the problems and their places.
 */
export function parseRequest<Schema extends z.ZodType>(schema: Schema, value: unknown, what: string): z.output<Schema> {
  const parsed = checkValue(schema, value);
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", `invalid request ${what.startsWith("to ") ? "" : "for "}${what}: ${tellProblems(parsed.problems)}`);
}
