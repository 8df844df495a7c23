import type { Identity } from "./certificates.ts";
import type { Answers, Question } from "./name-server.ts";

/** One request that arrived at a server, with all that would give a secret away. */
export interface SeenRequest {
  /** The address and port that it was sent to. */
  address: string;
  port: number;
  tls: boolean;
  /** The name in the TLS hello. */
  servername: string | null;
  method: string;
  /** As sent: with the query. */
  path: string;
  headers: Record<string, string>;
  rawHeaders: string[];
  body: string;
}

export interface SeenConnection {
  address: string;
  port: number;
}

/** What the servers start with. */
export interface ServersOptions {
  /** Plain HTTP, on every address. */
  http: readonly number[];
  /** HTTPS, on every address. */
  https: readonly number[];
  /** Sends back what it gets. */
  tcpEcho: readonly number[];
  /** Takes connections and neither reads nor writes. */
  tcpMute: readonly number[];
  /** Sends a megabyte at a time for as long as it is read, and counts. */
  tcpFlood: readonly number[];
  names?: { address: string; records: Readonly<Record<string, Answers>> };
  identities?: Record<"good" | "wrongName" | "expired" | "unknown", Identity>;
  /** Which hello gets another identity than the good one. */
  identityOf?: Readonly<Record<string, "wrongName" | "expired" | "unknown">>;
  git?: { folder: string; username: string; token: string };
  /** The hosts of an npm registry and of a Python index, over https. */
  registries?: { npm: string; pypi: string };
}

/** What the test may ask of the servers' process. */
export interface ServersCalls {
  /** Requests, connections, names in TLS hellos, and questions, since the last call with `take`. */
  seen(options?: { take?: boolean }): { requests: SeenRequest[]; connections: SeenConnection[]; hellos: string[]; questions: Question[] };
  /** IP packets that came in since the servers started, but for IPv6 multicast, which the kernel sends by itself. */
  packets(): number;
  setName(name: string, answers: Answers): void;
  /** Connections that are open now. */
  open(): number;
  /** Ends all connections without a word, as a server that loses power does; new ones are taken. */
  reset(): void;
  floodedBytes(): number;
}

export type Call = { id: number; call: keyof ServersCalls; args: unknown[] };
export type CallAnswer = { id: number; result?: unknown; error?: string };
