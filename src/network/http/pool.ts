import type { Upstream } from "./upstream.ts";

export interface UpstreamPoolOptions {
  /** The maximum number of idle connections for one key. */
  perKeyMax?: number;
  /** The maximum number of idle connections. The one that was idle for longest is evicted first. */
  totalMax?: number;
  /** Shorter than most servers keep a connection (Node: 5 s), so that they rarely close it first. */
  idleMs?: number;
}

const SWEEPS_PER_IDLE_TIME = 4;

/** Kept-alive connections to upstreams. A connection that receives anything or closes while idle is destroyed. */
export class UpstreamPool {
  readonly #perKeyMax: number;
  readonly #totalMax: number;
  readonly #idleMs: number;
  /** For each key, ordered by idle time, longest first. */
  readonly #idle = new Map<string, Upstream[]>();
  readonly #forget = (upstream: Upstream) => this.#remove(upstream);
  #size = 0;
  #sweeper: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(options: UpstreamPoolOptions = {}) {
    this.#perKeyMax = options.perKeyMax ?? 128;
    this.#totalMax = options.totalMax ?? 256;
    this.#idleMs = options.idleMs ?? 4_000;
  }

  /** The number of idle connections. */
  get size(): number {
    return this.#size;
  }

  /** Returns the connection used last if that was within `withinMs`. It then belongs to the caller. */
  take(key: string, withinMs: number): Upstream | null {
    const list = this.#idle.get(key);
    const upstream = list?.at(-1);
    if (list === undefined || upstream === undefined) return null;
    const now = performance.now();
    if (now >= upstream.idleUntilMs || now - upstream.idleSinceMs > withinMs || !upstream.usable) return null;
    list.pop();
    if (list.length === 0) this.#idle.delete(key);
    this.#size -= 1;
    upstream.onUnexpected = null;
    return upstream;
  }

  /** Takes over a connection between two requests. `serverKeepsMs` is how long the server says that it keeps it. */
  put(upstream: Upstream, serverKeepsMs: number | null = null): void {
    // Leaves a second for a request on its way.
    const keepMs = serverKeepsMs === null ? this.#idleMs : Math.min(this.#idleMs, serverKeepsMs - 1000);
    if (this.#closed || !upstream.usable || keepMs <= 0) {
      upstream.destroy();
      return;
    }
    upstream.user = null;
    upstream.onUnexpected = this.#forget;
    upstream.idleSinceMs = performance.now();
    upstream.idleUntilMs = upstream.idleSinceMs + keepMs;
    const list = this.#idle.get(upstream.key);
    if (list === undefined) this.#idle.set(upstream.key, [upstream]);
    else list.push(upstream);
    this.#size += 1;
    if (list !== undefined && list.length > this.#perKeyMax) this.#evict(list[0]);
    if (this.#size > this.#totalMax) this.#evict(this.#oldest());
    this.#sweeper ??= setInterval(() => this.#sweep(), this.#idleMs / SWEEPS_PER_IDLE_TIME).unref();
  }

  /** Destroys the idle connections whose key matches, after a change of what is allowed. */
  drop(matches: (key: string) => boolean): void {
    this.#evictWhere((upstream) => matches(upstream.key));
  }

  /** Destroys the idle connections, and any that are returned later. */
  close(): void {
    this.#closed = true;
    this.#evictWhere(() => true);
  }

  #evictWhere(matches: (upstream: Upstream) => boolean): void {
    for (const upstream of [...this.#idle.values()].flat()) if (matches(upstream)) this.#evict(upstream);
    if (this.#size === 0 && this.#sweeper !== null) {
      clearInterval(this.#sweeper);
      this.#sweeper = null;
    }
  }

  #sweep(): void {
    const now = performance.now();
    this.#evictWhere((upstream) => now >= upstream.idleUntilMs);
  }

  #evict(upstream: Upstream | undefined): void {
    if (upstream === undefined) return;
    this.#remove(upstream);
    upstream.destroy();
  }

  #remove(upstream: Upstream): void {
    const list = this.#idle.get(upstream.key);
    const at = list?.indexOf(upstream) ?? -1;
    if (list === undefined || at === -1) return;
    list.splice(at, 1);
    if (list.length === 0) this.#idle.delete(upstream.key);
    this.#size -= 1;
    upstream.onUnexpected = null;
  }

  #oldest(): Upstream | undefined {
    let oldest: Upstream | undefined;
    for (const [first] of this.#idle.values()) {
      if (first !== undefined && (oldest === undefined || first.idleSinceMs < oldest.idleSinceMs)) oldest = first;
    }
    return oldest;
  }
}
