import { z } from "zod";

/** The owner of a record. Tokens belong to an owner, and so does everything created with them. */
export const Owner = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
    "must be 1 to 64 letters, digits, dots, dashes or underscores, and begin with a letter or digit",
  );
export type Owner = z.infer<typeof Owner>;

/** This machine's user, who owns everything that was created without a token or before owners existed. */
export const LOCAL_OWNER = "local";

/** The owner on whose behalf a caller sees and uses a station. */
export interface OwnerView {
  /** The owner of everything that the caller creates. */
  owner: Owner;
  /** `own`: what belongs to other owners does not exist for the caller. */
  sees: "own" | "everything";
}

/** Returns the owner as stored in records and events: absent for this machine's user, as before owners existed. */
export function ownedBy(owner: Owner = LOCAL_OWNER): { owner?: Owner } {
  return owner === LOCAL_OWNER ? {} : { owner };
}
