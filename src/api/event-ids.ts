/** The maximum size of a page of events, for any number of events. */
const PAGE_BYTES = 4 * 1024 ** 2;

/** Returns a function that counts an event and tells whether the page has room for it. A page has at least one. */
export function createPageRoom({ limit, bytesMax = PAGE_BYTES }: { limit: number; bytesMax?: number }): (event: unknown) => boolean {
  let events = 0;
  let bytes = 0;
  return (event) => {
    if (events === limit || (events > 0 && bytes >= bytesMax)) return false;
    events += 1;
    bytes += JSON.stringify(event).length;
    return true;
  };
}

export interface Numbered {
  seq: number;
  type: string;
}

/**
 * Returns the events that fit on a page, and the number of the next one, or null after the last. If the log is damaged,
 * returns the events before the damage, and the next page fails.
 */
export async function pageOf<Event extends Numbered>(
  events: AsyncIterable<Event>,
  limit: number,
): Promise<{ events: Event[]; next: number | null }> {
  const page: Event[] = [];
  const hasRoom = createPageRoom({ limit });
  try {
    for await (const event of events) {
      if (!hasRoom(event)) return { events: page, next: event.seq };
      page.push(event);
    }
  } catch (error) {
    const last = page.at(-1);
    if (last === undefined) throw error;
    return { events: page, next: last.seq + 1 };
  }
  return { events: page, next: null };
}

/** Adds ids to events, so that a disconnected client can continue after the last one it received. */
export async function* withEventIds<Event extends Numbered>(events: AsyncIterable<Event>) {
  for await (const event of events) yield { id: event.seq, type: event.type, data: event };
}
