import { expect, test } from "vitest";
import { streamOf } from "./stream-of.ts";

const collect = async <Item>(stream: AsyncIterable<Item>) => {
  const items: Item[] = [];
  for await (const item of stream) items.push(item);
  return items;
};

test("streams every report, including immediate ones", async () => {
  const stream = streamOf<number>(async (tell) => {
    tell(1);
    tell(2);
    await Promise.resolve();
    tell(3);
  });
  expect(await collect(stream)).toEqual([1, 2, 3]);
});

test("throws what the work throws, after its reports", async () => {
  const seen: number[] = [];
  const read = async () => {
    const work = async (tell: (item: number) => void) => {
      tell(1);
      await new Promise((resolve) => setImmediate(resolve));
      throw new Error("broken");
    };
    for await (const item of streamOf<number>(work)) seen.push(item);
  };
  await expect(read()).rejects.toThrow("broken");
  expect(seen).toEqual([1]);
});

test("aborts the work when the reader stops", async () => {
  const ended = Promise.withResolvers<void>();
  const stream = streamOf<number>(async (tell, signal) => {
    signal.addEventListener("abort", () => ended.resolve());
    tell(1);
    await ended.promise;
  });
  for await (const item of stream) if (item === 1) break;
  await expect(ended.promise, "the work gets the signal to end").resolves.toBeUndefined();
});
