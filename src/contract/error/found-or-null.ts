import { CaissonError } from "../../contract/error/error.ts";

/** Resolves to null if finding failed with `not_found`. Rethrows any other failure. */
export async function foundOrNull<Found>(finding: Promise<Found>): Promise<Found | null> {
  return await finding.catch((error: unknown) => {
    if (error instanceof CaissonError && error.code === "not_found") return null;
    throw error;
  });
}
