import { z } from "zod";
import { auditName } from "../contract/audit/audit-text.ts";
import { CreateToken, NewToken, RotateToken, TokenView } from "../contract/token/token-verbs.ts";
import { type VerbsOf, verb } from "./verb.ts";

/** Tokens with which programs call a station over HTTP. */
export const tokens = {
  /** Throws `invalid`, `exists` for a name that is taken. */
  create: verb({
    path: "POST /v1/tokens",
    takes: CreateToken,
    gives: NewToken,
    status: 201,
    shownOnce: true,
    audited: ({ name, scope, owner }: z.output<typeof CreateToken>) => ({
      name: auditName(name),
      scope: auditName(scope),
      owner: auditName(owner),
    }),
    scope: "admin",
    owned: "admin",
    summary: "Create a token. Only this answer contains it.",
  }),
  /** Lists tokens by name, including expired ones. */
  list: verb({
    path: "GET /v1/tokens",
    gives: z.array(TokenView),
    key: "tokens",
    scope: "admin",
    owned: "admin",
    summary: "List tokens, without their secrets.",
  }),
  /** Revokes a token by id or name, even for open connections. Throws `not_found`. */
  revoke: verb({
    path: "DELETE /v1/tokens/{token}",
    gives: TokenView,
    scope: "admin",
    owned: "admin",
    summary: "Revoke a token, by id or name. Streams that were opened with it end within a second.",
  }),
  /** Gives a token a new secret. The old one becomes invalid, at once or after a grace period. Throws `not_found`. */
  rotate: verb({
    path: "POST /v1/tokens/{token}/rotate",
    takes: RotateToken,
    bodyOptional: true,
    gives: NewToken,
    shownOnce: true,
    scope: "admin",
    owned: "admin",
    summary: "Give a token a new secret, shown once. The old one becomes invalid, at once or after `graceMs`.",
  }),
};

export type TokenVerbs = VerbsOf<typeof tokens>;
