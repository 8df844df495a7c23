/** What came and was not taken yet, for one consumer. */
export interface TakenQueue<Item> extends AsyncIterable<Item> {
  push(item: Item): void;
  /** After what is there, the iteration ends, or throws. Idempotent. */
  end(error?: Error): void;
  /** From now on everything is taken at once, by nobody. */
  discard(): void;
  /** Resolves when everything was taken, and it has ended. Never rejects. */
  readonly drained: Promise<void>;
}

/** `onTaken` hears of each item as the consumer asks for the next. */
export function createTakenQueue<Item>(onTaken: (item: Item) => void): TakenQueue<Item> {
  const items: Item[] = [];
  const drained = Promise.withResolvers<void>();
  let end: { error: Error | undefined } | null = null;
  let discards = false;
  let wake = Promise.withResolvers<void>();
  const discard = () => {
    discards = true;
    for (const item of items.splice(0)) onTaken(item);
    if (end !== null) drained.resolve();
    wake.resolve();
  };
  async function* taken(): AsyncGenerator<Item> {
    try {
      for (;;) {
        const item = items.shift();
        if (item !== undefined) {
          yield item;
          onTaken(item);
        } else if (end !== null) {
          drained.resolve();
          if (end.error !== undefined) throw end.error;
          return;
        } else {
          wake = Promise.withResolvers();
          await wake.promise;
        }
      }
    } finally {
      // Whoever leaves early wants no more of it, and must not keep the other side waiting.
      discard();
    }
  }
  return {
    [Symbol.asyncIterator]: taken,
    push(item) {
      if (discards) return onTaken(item);
      items.push(item);
      wake.resolve();
    },
    end(error) {
      end ??= { error };
      if (discards) drained.resolve();
      wake.resolve();
    },
    discard,
    drained: drained.promise,
  };
}
