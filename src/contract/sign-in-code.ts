import { z } from "zod";
import { Owner } from "./owner.ts";
import { CreateToken, Scope, TokenName } from "./token-verbs.ts";

/** Codes that sign a browser in. Exchanging a code creates its token. */

export const CreateCode = z.strictObject({
  /** What the token may do. */
  scope: Scope.default("admin"),
  /** Whose the token is; absent: the caller's own. */
  owner: Owner.optional(),
  /** How long the token is valid after the exchange; absent: 12 hours. */
  expiresInMs: CreateToken.shape.expiresInMs,
});
export type CreateCode = z.input<typeof CreateCode>;

const OfCode = z.object({
  /** Of the token. */
  name: TokenName,
  owner: Owner,
  scope: Scope,
  /** When the code ends, which is soon. */
  expiresAt: z.iso.datetime(),
});

/** The only time that the code itself is shown. */
export const NewCode = OfCode.extend({ code: z.string(), tokenExpiresInMs: z.int().positive() });
export type NewCode = z.infer<typeof NewCode>;

/** What the holder of a code sees before deciding whether to sign in with it. */
export const CodeView = OfCode.extend({
  /** Who registered it, as the audit log names callers. */
  by: z.string(),
  /**
   * Whether the station's own user registered it over the socket in the state folder. Any other code may come from
   * somebody who wants this browser to work for them, so it needs a click.
   */
  fromSocket: z.boolean(),
});
export type CodeView = z.infer<typeof CodeView>;
