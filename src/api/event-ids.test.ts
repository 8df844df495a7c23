import { expect, test } from "vitest";
import { pageOf } from "./event-ids.ts";

async function* events(count: number, bytes: number) {
  for (let seq = 1; seq <= count; seq++) yield { seq, type: "test", pad: "x".repeat(bytes) };
}

test("ends a page of events at its limit or at 4 MiB, with the next sequence number", async () => {
  expect(await pageOf(events(3, 1), 2)).toMatchObject({ events: [{ seq: 1 }, { seq: 2 }], next: 3 });
  expect(await pageOf(events(2, 1), 2)).toMatchObject({ next: null });
  const large = await pageOf(events(100, 1024 ** 2), 100);
  expect([large.events.length, large.next]).toEqual([4, 5]);
  expect(await pageOf(events(2, 5 * 1024 ** 2), 100)).toMatchObject({ events: [{ seq: 1 }], next: 2 });
});
