import { z } from "zod";

/** Whose a thing is. Tokens belong to an owner, and so does what is made with them. */
export const Owner = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "1 to 64 letters, digits, dots, dashes or underscores, beginning with a letter or digit");
export type Owner = z.infer<typeof Owner>;

/** The user of this machine: whose everything is that was made without a token, or before there were owners. */
export const LOCAL_OWNER = "local";

/** For whom a station is looked at and used. */
export interface OwnerView {
  /** Whose everything is that is made. */
  owner: Owner;
  /** `own`: what belongs to others is not there. */
  sees: "own" | "everything";
}

/** As records and events have it: absent for the user of this machine, as it was before there were owners. */
export function ownedBy(owner: Owner = LOCAL_OWNER): { owner?: Owner } {
  return owner === LOCAL_OWNER ? {} : { owner };
}
