import { CaissonError } from "../../contract/error/error.ts";
import type { Kind } from "./kind.ts";

/** Throws `internal` if a kind decided to append nothing. */
export function nonEmpty<Item>(kind: Pick<Kind, "name">, items: readonly Item[]): readonly Item[] {
  if (items.length > 0) return items;
  throw new CaissonError("internal", `a ${kind.name} decided to append nothing`);
}

export function asCaissonError(error: unknown): CaissonError {
  if (error instanceof CaissonError) return error;
  return new CaissonError("internal", error instanceof Error ? error.message : String(error), { cause: error });
}
