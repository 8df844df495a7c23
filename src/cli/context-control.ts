/** A remote station, stored under a name. */
export interface SavedContext {
  url: string;
  token?: string;
  /** An absolute path to the CA certificates that must have signed the station's certificate. */
  caFile?: string;
  /** Whether the token may be sent over an unencrypted connection. */
  insecure: boolean;
}

/** A context as commands show it, without its token. */
export interface ContextView {
  name: string;
  url: string;
  caFile: string | null;
  insecure: boolean;
  hasToken: boolean;
}

/**
 * The user's contexts. Every method throws `denied` if other users can access the file that stores them, and `invalid`
 * if the file is damaged.
 */
export interface ContextControl {
  /** Lists the contexts. `current` is `local`, this machine's station, if none is selected. */
  list(): Promise<{ current: string; contexts: ContextView[] }>;
  /**
   * Throws `exists` unless `replace` is set, `invalid`, and `denied` for a URL that would expose the token in plain
   * text.
   */
  save(name: string, context: SavedContext, options: { replace: boolean; use: boolean }): Promise<void>;
  /** Selects a context. Throws `not_found`; `local` always exists. */
  use(name: string): Promise<void>;
  show(name: string): Promise<ContextView>;
  remove(name: string): Promise<void>;
  /**
   * Checks that the station accepts the token. Throws `unauthenticated`, or `unavailable` or `cancelled` if it does not
   * answer.
   */
  check(context: SavedContext): Promise<{ version: string }>;
  /** Removes the token and keeps the URL. */
  forgetToken(name: string): Promise<void>;
}
