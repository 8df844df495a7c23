export interface Numbered {
  seq: number;
  type: string;
}

/** The first events of some, and the number of the one after them; null where there is none. */
export async function pageOf<Event extends Numbered>(
  events: AsyncIterable<Event>,
  limit: number,
): Promise<{ events: Event[]; next: number | null }> {
  const page: Event[] = [];
  for await (const event of events) {
    if (page.length === limit) return { events: page, next: event.seq };
    page.push(event);
  }
  return { events: page, next: null };
}

/** As they are sent, so that whoever was cut off can go on after the last one that came. */
export async function* numbered<Event extends Numbered>(events: AsyncIterable<Event>) {
  for await (const event of events) yield { id: event.seq, type: event.type, data: event };
}
