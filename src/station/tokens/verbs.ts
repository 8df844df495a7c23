import type { CreateToken, NewToken, RotateToken, TokenView } from "../../contract/token-verbs.ts";

/** What can be done with the tokens that let programs talk to a station over HTTP. */
export interface TokenVerbs {
  /** Throws `invalid`, `exists` for a name that a token has. */
  create(request: CreateToken): Promise<NewToken>;
  /** By their names; those that have expired, too. */
  list(): Promise<TokenView[]>;
  /** By id or name. It is worth nothing from then on, also where it was used already. Throws `not_found`. */
  revoke(token: string): Promise<TokenView>;
  /**
   * The same token, by id or name, with another secret: what was shown before is worth nothing, at once or after a
   * while. Throws `not_found`.
   */
  rotate(token: string, request?: RotateToken): Promise<NewToken>;
}
