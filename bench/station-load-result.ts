/** What the program of the load is to do. */
export interface LoadOrder {
  url: string;
  token: string;
  /** A second, and for how long. */
  rate: number;
  seconds: number;
  /** Kept alive; 0: a new connection for each request. */
  sockets: number;
  /** Of a hundred requests `share` are of this kind. */
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
  /** All else: resets, timeouts, other statuses, by what it was. */
  failed: number;
  failures: Record<string, number>;
  kinds: Record<string, Quantiles>;
}
