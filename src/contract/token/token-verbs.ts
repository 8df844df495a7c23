import { z } from "zod";
import { LOCAL_OWNER, Owner } from "./owner.ts";

/** Arguments and answers of the station's verbs for tokens, with which programs access a station over HTTP. */

/**
 * What a token allows; each scope includes the previous one. `read`: view. `run`: create and use sandboxes and runs,
 * without access to the station's machine. `admin`: everything, including that machine's folders and other tokens.
 */
export const Scope = z.enum(["read", "run", "admin"]);
export type Scope = z.infer<typeof Scope>;

export const TokenId = z.string().regex(/^tok_[a-z2-7]{12}$/, "a token id looks like tok_k3v7q2m5x4ab");
export type TokenId = z.infer<typeof TokenId>;

export const TokenName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "must be 1 to 64 letters, digits, dots, dashes or underscores, and not begin with a dot");

export const CreateToken = z.strictObject({
  /** A name for users. It can be reused once its token is removed. */
  name: TokenName,
  scope: Scope.default("run"),
  /**
   * The owner of the token and of everything created with it. Tokens with the scope `read` or `run` see nothing of
   * other owners.
   */
  owner: Owner.default(LOCAL_OWNER),
  /** Absent: valid until it is revoked. */
  expiresInMs: z
    .int()
    .min(1000)
    .max(10 * 366 * 86_400_000)
    .optional(),
});
export type CreateToken = z.input<typeof CreateToken>;

export const RotateToken = z.strictObject({
  /** How long the previous token remains valid, so that programs can switch to the new one without a gap. */
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
  /** Absent in records from before owners existed. */
  owner: Owner.default(LOCAL_OWNER),
  createdAt: z.iso.datetime(),
  expiresAt: z.iso.datetime().nullable(),
});
export type TokenView = z.infer<typeof TokenView>;

/** The only answer that contains the token itself: we store only its hash. */
export const NewToken = TokenView.extend({ token: z.string() });
export type NewToken = z.infer<typeof NewToken>;
