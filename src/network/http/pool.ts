export interface UpstreamPoolOptions {
  /** Idle connections kept for one key. */
  perKeyMax?: number;
  /** Idle connections kept in all; the one idle for longest goes first. */
  totalMax?: number;
  /** Below what servers usually keep (Node: 5 s), so that it is rarely they who close. */
  idleMs?: number;
}

/** Kept-alive connections to upstreams. A connection that says anything or closes while idle is destroyed. */
export class UpstreamPool {
  constructor(_options: UpstreamPoolOptions = {}) {}

  /** Destroys the idle connections whose key matches: after a change of what is allowed. */
  drop(_matches: (key: string) => boolean): void {}

  /** Destroys what is idle; connections that come back later are destroyed, too. */
  close(): void {}
}
