/** A queue of items for one consumer. */
export interface ItemQueue<Item> extends AsyncIterable<Item> {
  push(item: Item): void;
  /** Ends the iteration, with this error if given, after the remaining items. Idempotent. */
  end(error?: Error): void;
  /** Drops all current and future items immediately. */
  discard(): void;
  /** Resolves when the queue has ended and every item was consumed. Never rejects. */
  readonly drained: Promise<void>;
}

/** `onTaken` is called for each item when the consumer requests the next one. */
export function createItemQueue<Item>(onTaken: (item: Item) => void): ItemQueue<Item> {
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
  async function* takeItems(): AsyncGenerator<Item> {
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
      // A reader that leaves early must not keep the other side waiting.
      discard();
    }
  }
  return {
    [Symbol.asyncIterator]: takeItems,
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
