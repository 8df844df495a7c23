/**
 * Reports the first item of each kind at once and counts its repeats, so that a program that retries endlessly cannot
 * fill the log.
 */
export interface Repeats<Item> {
  add(item: Item): void;
  /** Reports the counts so far. */
  flush(): void;
}

export interface RepeatsOptions<Item> {
  tell(item: Item, count: number): void;
  /** Items with the same key are of the same kind. */
  keyOf(item: Item): string;
  /** How many kinds are counted separately. */
  differentMax: number;
  /** Maps an item beyond that limit to one of a few kinds, so that even ever-changing items are counted. */
  summarised(item: Item): Item;
  /** The time after which the count is reported. If absent, only `flush` reports it. */
  windowMs?: number;
}

interface Kind<Item> {
  last: Item;
  count: number;
  timer: NodeJS.Timeout | undefined;
}

export function createRepeats<Item>(options: RepeatsOptions<Item>): Repeats<Item> {
  const { tell, keyOf, differentMax, summarised, windowMs } = options;
  const kinds = new Map<string, Kind<Item>>();
  const close = (key: string, kind: Kind<Item>) => {
    clearTimeout(kind.timer);
    kinds.delete(key);
    if (kind.count > 0) tell(kind.last, kind.count);
  };
  return {
    add(item) {
      const isPast = !kinds.has(keyOf(item)) && kinds.size >= differentMax;
      const last = isPast ? summarised(item) : item;
      const key = keyOf(last);
      const known = kinds.get(key);
      if (known !== undefined) {
        known.last = last;
        known.count += 1;
        return;
      }
      const kind: Kind<Item> = { last, count: 0, timer: undefined };
      if (windowMs !== undefined) kind.timer = setTimeout(() => close(key, kind), windowMs).unref();
      kinds.set(key, kind);
      tell(last, 1);
    },
    flush() {
      for (const [key, kind] of [...kinds]) close(key, kind);
    },
  };
}
