/** A station somewhere, as it is kept under a name. */
export interface SavedContext {
  url: string;
  token?: string;
  /** Absolute: certificates that its own must lead to. */
  caFile?: string;
  /** Whether the token may go over the network in the clear. */
  insecure: boolean;
}

/** The same as it is shown: never the token. */
export interface ContextView {
  name: string;
  url: string;
  caFile: string | null;
  insecure: boolean;
  hasToken: boolean;
}

/**
 * The user's contexts. All throw `denied` where the file that keeps them is not theirs alone, `invalid` for a damaged
 * one.
 */
export interface ContextControl {
  /** `current` is `local` where none is chosen: this machine's own station. */
  list(): Promise<{ current: string; contexts: ContextView[] }>;
  /**
   * Throws `exists` unless it `replace`s, `invalid`, `denied` for an address over which a token would go in the clear.
   */
  save(name: string, context: SavedContext, options: { replace: boolean; use: boolean }): Promise<void>;
  /** Throws `not_found`; `local` is always there. */
  use(name: string): Promise<void>;
  show(name: string): Promise<ContextView>;
  remove(name: string): Promise<void>;
  /**
   * Asks the station whether it takes the token. Throws `unauthenticated`, `unavailable`, `cancelled` when it does not
   * answer.
   */
  check(context: SavedContext): Promise<{ version: string }>;
  /** Keeps the address. */
  forgetToken(name: string): Promise<void>;
}
