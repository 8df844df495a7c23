/**
 * What a piece of work tells while it goes on, as a stream: it ends with the work, and throws what that throws. Whoever
 * stops reading ends the work by its signal. What is told faster than it is read waits, so this is for news that come
 * one by one.
 */
export async function* streamOf<Item>(work: (tell: (item: Item) => void, signal: AbortSignal) => Promise<void>): AsyncGenerator<Item> {
  const waiting: Item[] = [];
  const left = new AbortController();
  let news = Promise.withResolvers<"told">();
  const tell = (item: Item) => {
    waiting.push(item);
    news.resolve("told");
  };
  const ended = work(tell, left.signal).then(() => "ended" as const);
  // Heard of where it is awaited; nobody may be reading at that moment.
  ended.catch(() => {});
  try {
    for (;;) {
      const what = await Promise.race([news.promise, ended]);
      news = Promise.withResolvers();
      yield* waiting.splice(0);
      if (what === "ended") return;
    }
  } finally {
    left.abort();
  }
}
