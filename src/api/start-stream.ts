/**
 * Waits for a stream's first item or its end. An error before the first item is then a plain failure of the call, not a
 * stream that breaks off.
 */
export async function startStream<Item>(items: AsyncIterable<Item>): Promise<AsyncIterable<Item>> {
  const iterator = items[Symbol.asyncIterator]();
  const first = await iterator.next();
  let isFirst = true;
  return {
    [Symbol.asyncIterator]: () => ({
      next() {
        if (!isFirst) return iterator.next();
        isFirst = false;
        return Promise.resolve(first);
      },
      return: async () => (await iterator.return?.()) ?? { done: true, value: undefined },
    }),
  };
}
