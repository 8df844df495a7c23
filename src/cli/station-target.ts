/** The station that a command works with. */
export type StationTarget =
  /**
   * This process itself. `unused` explains why the command does not use the running station of this state folder, if
   * the user should know.
   */
  | { kind: "here"; unused?: string }
  /** The station of this state folder, reached through its socket. */
  | { kind: "socket"; socketPath: string; pid: number }
  /** A remote station at a URL, and the name of its context, if any. */
  | { kind: "elsewhere"; url: string; context: string | null };
