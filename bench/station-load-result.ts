/** The task of the load program. */
export interface LoadOrder {
  url: string;
  token: string;
  /** Requests a second, and for how many seconds. */
  rate: number;
  seconds: number;
  /** Connections to keep alive; 0 opens a new connection for each request. */
  sockets: number;
  /** `share` of a hundred requests are of this kind. */
  kinds: { name: string; share: number; method: "GET" | "POST" | "PUT"; path: string; body?: string }[];
}

interface Quantiles {
  p50: number;
  p99: number;
  n: number;
}

export interface LoadResult {
  asked: number;
  accepted: Quantiles & { perSecond: number };
  /** 503 or 429 with Retry-After. */
  refused: Quantiles;
  /** Everything else, counted by cause: resets, timeouts, other statuses. */
  failed: number;
  failures: Record<string, number>;
  kinds: Record<string, Quantiles>;
}
