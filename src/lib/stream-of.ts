import { ignore } from "./failures.ts";
/**
 * Streams the reports of some work while it runs. The stream ends with the work, and throws what the work throws. If
 * the reader stops, the work's signal aborts. Reports are queued without bound until they are read, so use this only
 * for occasional ones.
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
  void ignore(ended, "awaited below; the reader may not be waiting at that moment");
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
