import { expect, test } from "vitest";
import { createCredit, partsWithin } from "./credit.ts";

test("sends pieces of any size within the window to a slow reader", async () => {
  const WINDOW = 256;
  const { signal } = new AbortController();
  const credit = createCredit(WINDOW, signal);
  const sent: number[] = [];
  let took = 0;
  let acknowledgedBytes = 0;
  for (const size of [1, 250, 3, 1000, WINDOW, 7]) {
    for await (const { at, part } of partsWithin(Buffer.from(Array.from({ length: size }, (_, n) => n & 255)), {
      credit,
      bytesMax: 1000,
    })) {
      expect([part[0], part.length <= WINDOW, credit.remaining() >= 0]).toEqual([at & 255, true, true]);
      sent.push(part.length);
      // The reader acknowledges later, and only by quarters of the window.
      setImmediate(() => {
        took += part.length;
        if (took - acknowledgedBytes < WINDOW / 4) return;
        acknowledgedBytes = took;
        credit.acknowledge(acknowledgedBytes);
      });
    }
  }
  expect(sent.reduce((sum, bytes) => sum + bytes)).toBe(1 + 250 + 3 + 1000 + WINDOW + 7);
});

test("tells a waiting writer that the stream has ended", async () => {
  const end = new AbortController();
  const credit = createCredit(10, end.signal);
  credit.spend(10);
  const waiting = partsWithin(Buffer.alloc(1), { credit, bytesMax: 100 }).next();
  end.abort();
  await expect(waiting).rejects.toMatchObject({ code: "cancelled" });
});
