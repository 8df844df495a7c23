import type { Identity } from "./certificates.ts";
import type { Answers, Question } from "./name-server.ts";

/** A request that arrived at a server, with everything that could contain a secret. */
export interface SeenRequest {
  /** The address and port to which it was sent. */
  address: string;
  port: number;
  tls: boolean;
  /** The server name in the TLS hello. */
  servername: string | null;
  method: string;
  /** As sent, including the query. */
  path: string;
  headers: Record<string, string>;
  rawHeaders: string[];
  body: string;
}

export interface SeenConnection {
  address: string;
  port: number;
}

/** The options of the servers. */
export interface ServersOptions {
  /** Ports for plain HTTP, on every address. */
  http: readonly number[];
  /** Ports for HTTPS, on every address. */
  https: readonly number[];
  /** Ports that send back what they receive. */
  tcpEcho: readonly number[];
  /** Ports that accept connections and neither read nor write. */
  tcpMute: readonly number[];
  /** Ports that send a megabyte at a time as long as the client reads, and count the bytes. */
  tcpFlood: readonly number[];
  names?: { address: string; records: Readonly<Record<string, Answers>> };
  identities?: Record<"good" | "wrongName" | "expired" | "unknown", Identity>;
  /** The server names that get another identity than the good one. */
  identityOf?: Readonly<Record<string, "wrongName" | "expired" | "unknown">>;
  git?: { folder: string; username: string; token: string };
  /** The hosts of an npm registry and a Python index, over https. */
  registries?: { npm: string; pypi: string };
}

/** The calls that a test can make to the servers' process. */
export interface ServersCalls {
  /** Returns the requests, connections, TLS server names and queries since the last call with `take`. */
  seen(options?: { take?: boolean }): { requests: SeenRequest[]; connections: SeenConnection[]; hellos: string[]; questions: Question[] };
  /**
   * Returns the number of IP packets received since the start, except IPv6 multicast, which the kernel sends on its
   * own.
   */
  packets(): number;
  setName(name: string, answers: Answers): void;
  /** Returns the number of open connections. */
  open(): number;
  /** Drops all connections without a close, like a server that loses power. Accepts new ones. */
  reset(): void;
  floodedBytes(): number;
}

export type Call = { id: number; call: keyof ServersCalls; args: unknown[] };
export type CallAnswer = { id: number; result?: unknown; error?: string };
