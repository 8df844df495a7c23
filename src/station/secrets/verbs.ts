import type { SecretView, SetSecret } from "../../contract/secret-verbs.ts";

/**
 * What can be done with the secrets that a station keeps: they go in, are injected where they may go, and never come
 * out. `owner` is whose they are; default the user of this machine. An owner's own secret wins over the configuration's
 * of the same name.
 */
export interface SecretVerbs {
  /**
   * Keeps a value and where it may go, in place of one of the same name; what uses it has the new value within a
   * minute. Throws `invalid` for a value that no header can have, `busy` past the limit.
   */
  set(name: string, request: SetSecret, options?: { owner?: string }): Promise<SecretView>;
  /** By their names, of one owner or of all. */
  list(options?: { owner?: string }): Promise<SecretView[]>;
  /** Within a minute it is injected nowhere. Throws `not_found`. */
  remove(name: string, options?: { owner?: string }): Promise<void>;
}
