import { z } from "zod";
import { LOCAL_OWNER, Owner } from "./owner.ts";

/** Arguments and answers of the station's verbs about tokens: what lets a program talk to a station over HTTP. */

/**
 * What a token lets its holder do; each includes the one before. `read`: look. `run`: make and use sandboxes and runs,
 * without reaching the station's machine. `admin`: everything, the folders of that machine and other tokens included.
 */
export const Scope = z.enum(["read", "run", "admin"]);
export type Scope = z.infer<typeof Scope>;

export const TokenId = z.string().regex(/^tok_[a-z2-7]{12}$/, "a token's id looks like tok_k3v7q2m5x4ab");
export type TokenId = z.infer<typeof TokenId>;

export const TokenName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "1 to 64 letters, digits, dots, dashes or underscores, not beginning with a dot");

export const CreateToken = z.strictObject({
  /** What people call it; one name may be used again once its token is gone. */
  name: TokenName,
  scope: Scope.default("run"),
  /** Whose it is, and what is made with it; tokens that may only read or run see nothing of other owners. */
  owner: Owner.default(LOCAL_OWNER),
  /** Absent: until it is revoked. */
  expiresInMs: z
    .int()
    .min(1000)
    .max(10 * 366 * 86_400_000)
    .optional(),
});
export type CreateToken = z.input<typeof CreateToken>;

export const RotateToken = z.strictObject({
  /** How long the token as it was is still taken, so that programs can be given the new one without a gap. */
  graceMs: z
    .int()
    .min(0)
    .max(30 * 86_400_000)
    .default(0),
});
export type RotateToken = z.input<typeof RotateToken>;

export const TokenView = z.object({
  id: TokenId,
  name: TokenName,
  scope: Scope,
  /** Absent in records from before there were owners. */
  owner: Owner.default(LOCAL_OWNER),
  createdAt: z.iso.datetime(),
  expiresAt: z.iso.datetime().nullable(),
});
export type TokenView = z.infer<typeof TokenView>;

/** The only time that the token itself is shown: what is kept is its hash. */
export const NewToken = TokenView.extend({ token: z.string() });
export type NewToken = z.infer<typeof NewToken>;
