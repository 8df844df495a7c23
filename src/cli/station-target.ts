/** Which station a command works with. */
export type StationTarget =
  /** This process itself. `unused`: why not the one that runs on this state folder, where that is worth knowing. */
  | { kind: "here"; unused?: string }
  /** The one of this state folder, by its socket. */
  | { kind: "socket"; socketPath: string; pid: number }
  /** One that is reached by its address, under a name where it is a context. */
  | { kind: "elsewhere"; url: string; context: string | null };
