/** What a page of events has at most, whatever their number. */
const PAGE_BYTES = 4 * 1024 ** 2;

/** Whether a page has room for one more event. Counts those it is asked about; a page has at least one. */
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

/** As many events as fit a page, and the number of the next one; null after the last. */
export async function pageOf<Event extends Numbered>(
  events: AsyncIterable<Event>,
  limit: number,
): Promise<{ events: Event[]; next: number | null }> {
  const page: Event[] = [];
  const hasRoom = createPageRoom({ limit });
  for await (const event of events) {
    if (!hasRoom(event)) return { events: page, next: event.seq };
    page.push(event);
  }
  return { events: page, next: null };
}

/** As they are sent, so that whoever was cut off can go on after the last one that came. */
export async function* numbered<Event extends Numbered>(events: AsyncIterable<Event>) {
  for await (const event of events) yield { id: event.seq, type: event.type, data: event };
}
