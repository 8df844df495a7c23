import { CaissonError } from "../contract/error/error.ts";
import { fromSystem } from "../contract/error/system-error.ts";
import { type Line, line, messageLines } from "./terminal/line.ts";

/** Formats a failure for people. */
export function failureLines({ message, hint }: Pick<CaissonError, "message" | "hint">): Line[] {
  return [...messageLines(`caisson: ${message}`), ...(hint?.split("\n") ?? []).map((each) => line`hint: ${each}`)];
}

/**
 * Converts any error. One that is neither ours nor the system's is a defect in Caisson, and its stack is the only clue
 * to the cause.
 */
export function asCaissonError(error: unknown): CaissonError {
  if (error instanceof CaissonError) return error;
  const ofMachine = fromSystem(error);
  if (ofMachine !== null) return ofMachine;
  const message = error instanceof Error ? error.message : String(error);
  const where = error instanceof Error ? (error.stack ?? "").split("\n").slice(1, 4).join(" ").replaceAll(/\s+/g, " ") : "";
  return new CaissonError("internal", `${message}${where === "" ? "" : ` (${where.trim()})`}`, {
    cause: error,
    hint: "This is a defect in Caisson; please report it.",
  });
}
