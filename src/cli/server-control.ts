import type { ShutDown, StationStatus } from "../contract/api/station-routes.ts";
import type { CreateCode, NewCode } from "../contract/sign-in-code.ts";

/** The station as a server, for the commands that start, show and end it. */
export interface ServerControl {
  /**
   * In this process. Throws `conflict` where one runs or the port is taken, `invalid` for an address that others
   * reach while nothing encrypts.
   */
  start(options: ServedWhere & { log: ServedLog }): Promise<ServedStation>;
  /** In a process of its own; resolves when it listens. Throws what kept it from that. */
  startDetached(args: readonly string[]): Promise<ReachedStation>;
  /** The one of this state folder; null when none runs. */
  reach(): Promise<ReachedStation | null>;
  /** The one elsewhere that was chosen. Throws `unavailable`, `unauthenticated`; null when none was chosen. */
  reachChosen(): Promise<StationStatus | null>;
  /**
   * Registers a code that signs a browser in at `url`, with the station elsewhere that was chosen, or else with the one
   * of this state folder; null when none runs. Throws `denied` for a token that may not.
   */
  createCode(request: CreateCode): Promise<{ url: string; code: NewCode } | null>;
}

/** Where it listens, and what lies between it and those who reach it from elsewhere. */
export interface ServedWhere {
  listenHost: string;
  port: number;
  /** Files of a certificate and its key, absolute. */
  tls?: { certPath: string; keyPath: string };
  publicUrl?: string;
  previewsAt?: string;
  proxies: readonly string[];
}

/** What it says of what it does. */
export interface ServedLog {
  format: "json" | "text";
  level: "error" | "warn" | "info" | "debug" | "silent";
  /** Absolute; it is bounded, and former ones are kept beside it. Absent: `print`. */
  file?: string;
  print(text: string): Promise<void>;
}

export interface ServedStation extends AsyncDisposable {
  readonly status: StationStatus;
  readonly socketPath: string;
  /** Resolves when somebody asked over the API that it end. */
  readonly askedToEnd: Promise<ShutDown>;
  /** Resolves when somebody asked that it end and wait for no run. */
  readonly askedToEndAtOnce: Promise<void>;
  /** Resolves when it drives no run. */
  drained(): Promise<void>;
  /** Takes no more requests, lets those under way finish for a few seconds, and ends. */
  close(): Promise<void>;
}

export interface ReachedStation {
  readonly status: StationStatus;
  readonly socketPath: string;
  /**
   * Asks it to end, and resolves when its process has. With `drain` its runs are waited for, and `onWait` hears how
   * many are left. Throws `timeout`.
   */
  shutDown(request?: Partial<ShutDown> & { onWait?: (runs: number) => Promise<void> }): Promise<void>;
}
