import { CaissonError } from "../../contract/error.ts";

/** Null for what is not there, or not any more. */
export async function foundOrNull<Found>(finding: Promise<Found>): Promise<Found | null> {
  return await finding.catch((error: unknown) => {
    if (error instanceof CaissonError && error.code === "not_found") return null;
    throw error;
  });
}
