import { createPauses } from "../lib/pauses.ts";
import type { Log, StoredEvent } from "./log.ts";

const PAGE_EVENTS = 2_000;
/** An event may have 4 MiB, so a page bounded only by count could take gigabytes. */
const PAGE_BYTES = 4 * 1024 ** 2;

/** Reads a stream from an event to its end, in pages of bounded size. Yields to the event loop between pages. */
export async function* readPages(log: Pick<Log, "read">, stream: string, { fromSeq = 1 } = {}): AsyncGenerator<StoredEvent[]> {
  const pause = createPauses();
  for (let next = fromSeq; ; await pause()) {
    const page = await log.read(stream, { fromSeq: next, limit: PAGE_EVENTS, bytesMax: PAGE_BYTES });
    const last = page.at(-1);
    if (last === undefined) return;
    yield page;
    next = last.seq + 1;
  }
}
