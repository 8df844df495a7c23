/** How long a connection may take to present a token before a newer one from its address may replace it. */
const PATIENCE_MS = 1_000;

export interface ConnectionShareOptions {
  /** Maximum number of connections, over all addresses. */
  max: number;
  /** Connections from one address that have presented a token. Default: a quarter of `max`. */
  admittedPerAddress?: number;
  /** Connections from one address that have not presented a token yet. Default: an eighth of `max`. */
  waitingPerAddress?: number;
  /** Whether many callers share an address, as behind a proxy. Such an address has no separate bound. */
  isShared?: (address: string) => boolean;
  now?: () => number;
}

/** One connection's share of a listener. */
export interface ConnectionShare {
  readonly isAdmitted: boolean;
  /** Records that the caller presented a token. Returns false if all connections of the address's share are busy. */
  admit(): boolean;
  /** A request begins or ends on the connection. An idle connection makes room for another. */
  begin(): void;
  end(): void;
}

export interface Connection {
  address: string;
  /** Closes the connection immediately. */
  destroy(): void;
}

export interface ConnectionShares {
  /** Counts a new connection, and closes an older one if there is no room for both. */
  add(connection: Connection): ConnectionShare & { remove(): void };
  count(): number;
}

interface Entry extends Connection {
  key: string | null;
  sinceMs: number;
  requests: number;
  isAdmitted: boolean;
}

/**
 * A connection without a token can always be replaced: the oldest one is closed when its address, or the listener, has
 * no room for a new one. So silent or polling strangers never keep a caller out, even from the same address. Callers
 * with a token keep their connections; one address may use a quarter of them.
 */
export function createConnectionShares(options: ConnectionShareOptions): ConnectionShares {
  const { max, isShared = () => false, now = () => performance.now() } = options;
  const { admittedPerAddress = share(max, 4), waitingPerAddress = share(max, 8) } = options;
  const waiting = new Pool();
  const idle = new Pool();
  const admitted = new Map<string, number>();
  let count = 0;
  const remove = (entry: Entry) => {
    waiting.delete(entry);
    idle.delete(entry);
    count -= 1;
    if (entry.isAdmitted && entry.key !== null) countDown(admitted, entry.key);
  };
  const evict = (entry: Entry | undefined): boolean => {
    entry?.destroy();
    return entry !== undefined;
  };
  /** Closes the address's oldest connection after its grace period; at twice the address's share, immediately. */
  const evictWaiting = (key: string) => {
    const size = waiting.sizeOf(key);
    const oldest = waiting.oldestOf(key);
    if (size < waitingPerAddress || oldest === undefined) return;
    if (size >= 2 * waitingPerAddress || now() - oldest.sinceMs >= PATIENCE_MS) evict(oldest);
  };
  const admit = (entry: Entry): boolean => {
    if (entry.isAdmitted) return true;
    if (entry.key !== null) {
      const hasShare = (admitted.get(entry.key) ?? 0) >= admittedPerAddress;
      if (hasShare && !evict(idle.oldestOf(entry.key))) return false;
      admitted.set(entry.key, (admitted.get(entry.key) ?? 0) + 1);
    }
    entry.isAdmitted = true;
    waiting.delete(entry);
    return true;
  };
  return {
    add(connection) {
      const key = isShared(connection.address) ? null : addressGroup(connection.address);
      let isOpen = true;
      const destroy = () => {
        if (isOpen) remove(entry);
        isOpen = false;
        connection.destroy();
      };
      const entry: Entry = { ...connection, destroy, key, sinceMs: now(), requests: 0, isAdmitted: false };
      if (key !== null) evictWaiting(key);
      if (count >= max && !evict(waiting.oldest()) && !evict(idle.oldest())) connection.destroy();
      count += 1;
      waiting.add(entry);
      return {
        get isAdmitted() {
          return entry.isAdmitted;
        },
        admit: () => admit(entry),
        begin() {
          entry.requests += 1;
          idle.delete(entry);
        },
        end() {
          entry.requests -= 1;
          if (isOpen && entry.isAdmitted && entry.requests === 0) idle.add(entry);
        },
        remove() {
          if (isOpen) remove(entry);
          isOpen = false;
        },
      };
    },
    count: () => count,
  };
}

const share = (max: number, parts: number): number => Math.max(1, Math.floor(max / parts));

/** Entries by address, oldest first. */
class Pool {
  readonly #all = new Set<Entry>();
  readonly #byKey = new Map<string | null, Set<Entry>>();

  add(entry: Entry): void {
    this.#all.add(entry);
    const ofKey = this.#byKey.get(entry.key);
    if (ofKey === undefined) this.#byKey.set(entry.key, new Set([entry]));
    else ofKey.add(entry);
  }

  delete(entry: Entry): void {
    const ofKey = this.#byKey.get(entry.key);
    if (!this.#all.delete(entry) || ofKey === undefined) return;
    ofKey.delete(entry);
    if (ofKey.size === 0) this.#byKey.delete(entry.key);
  }

  sizeOf(key: string): number {
    return this.#byKey.get(key)?.size ?? 0;
  }

  oldestOf(key: string): Entry | undefined {
    return this.#byKey.get(key)?.values().next().value;
  }

  oldest(): Entry | undefined {
    return this.#all.values().next().value;
  }
}

/** Returns the group an address counts toward: the /64 network of an IPv6 address, or the IPv4 address itself. */
function addressGroup(address: string): string {
  const plain = address.replace(/^::ffff:(?=[0-9.]+$)/i, "");
  if (!plain.includes(":")) return plain;
  const [head = "", tail] = plain.split("%", 1)[0]?.split("::", 2) ?? [];
  const first = head === "" ? [] : head.split(":");
  const last = tail === undefined || tail === "" ? [] : tail.split(":");
  const middle = tail === undefined ? [] : Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => "0");
  return [...first, ...middle, ...last].slice(0, 4).join(":");
}

function countDown(counts: Map<string, number>, key: string): void {
  const left = (counts.get(key) ?? 0) - 1;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
}
