import type { CreateCode, NewCode } from "../contract/token/sign-in-code.ts";
import type { ShutDown, StationStatus } from "../verbs/station-routes.ts";

/** The station as a server, for the commands that start, show and stop it. */
export interface ServerControl {
  /**
   * Starts it in this process. Throws `conflict` if one is running or the port is taken, and `invalid` for an address
   * that other machines can reach without encryption.
   */
  start(options: ServedWhere & { log: ServedLog }): Promise<ServedStation>;
  /** Starts it in a separate process; resolves when it listens. Throws the reason if it does not. */
  startDetached(args: readonly string[]): Promise<ReachedStation>;
  /** Connects to the station of this state folder; resolves with null if none is running. */
  reach(): Promise<ReachedStation | null>;
  /**
   * Returns the status of the selected remote station, or null if none is selected. Throws `unavailable`,
   * `unauthenticated`.
   */
  reachChosen(): Promise<StationStatus | null>;
  /**
   * Registers a code that signs a browser in at `url`, with the selected remote station or else with the station of
   * this state folder. Resolves with null if none is running. Throws `denied` if the token may not do this.
   */
  createCode(request: CreateCode): Promise<{ url: string; code: NewCode } | null>;
}

/** Where the station listens, and what is between it and its clients. */
export interface ServedWhere {
  listenHost: string;
  port: number;
  /** Absolute paths of a certificate and its key. */
  tls?: { certPath: string; keyPath: string };
  publicUrl?: string;
  previewsAt?: string;
  proxies: readonly string[];
}

/** The format, level and destination of the station's log. */
export interface ServedLog {
  format: "json" | "text";
  level: "error" | "warn" | "info" | "debug" | "silent";
  /** An absolute path. Rotated files are kept next to it. If absent, `print` receives the log. */
  file?: string;
  print(text: string): Promise<void>;
}

export interface ServedStation extends AsyncDisposable {
  readonly status: StationStatus;
  readonly socketPath: string;
  /** Resolves when an API client requests shutdown. */
  readonly askedToEnd: Promise<ShutDown>;
  /** Resolves when an API client requests shutdown without waiting for runs. */
  readonly askedToEndAtOnce: Promise<void>;
  /** Resolves when the station drives no run. */
  drained(): Promise<void>;
  /** Accepts no more requests, gives requests in progress a few seconds to finish, and stops. */
  close(): Promise<void>;
}

export interface ReachedStation {
  readonly status: StationStatus;
  readonly socketPath: string;
  /**
   * Requests shutdown and resolves when the process has ended. With `drain`, the station first waits for its runs, and
   * `onWait` receives the number remaining. Throws `timeout`.
   */
  shutDown(request?: Partial<ShutDown> & { onWait?: (runs: number) => Promise<void> }): Promise<void>;
}
