import { z } from "zod";
import { Owner } from "./owner.ts";
import { CreateToken, Scope, TokenName } from "./token-verbs.ts";

/** Codes that sign a browser in. Exchanging a code creates its token. */

export const CreateCode = z.strictObject({
  /** The scope of the token. */
  scope: Scope.default("admin"),
  /** The owner of the token; absent: the caller. */
  owner: Owner.optional(),
  /** How long the token is valid after the exchange; absent: 12 hours. */
  expiresInMs: CreateToken.shape.expiresInMs,
});
export type CreateCode = z.input<typeof CreateCode>;

const OfCode = z.object({
  /** The name of the token. */
  name: TokenName,
  owner: Owner,
  scope: Scope,
  /** When the code expires, which is soon. */
  expiresAt: z.iso.datetime(),
});

/** The only answer that contains the code itself. */
export const NewCode = OfCode.extend({ code: z.string(), tokenExpiresInMs: z.int().positive() });
export type NewCode = z.infer<typeof NewCode>;

/** What the holder of a code sees before signing in with it. */
export const CodeView = OfCode.extend({
  /** Who registered the code, with the caller names of the audit log. */
  by: z.string(),
  /**
   * Whether the station's own user registered the code over the socket in the state folder. Any other code may come
   * from an attacker who wants this browser to work for them, so it needs a click.
   */
  fromSocket: z.boolean(),
});
export type CodeView = z.infer<typeof CodeView>;
