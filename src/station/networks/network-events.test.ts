import { expect, test } from "vitest";
import { newsOf } from "./network-events.ts";

test("each event of a log is told once, also when its oldest are dropped", async () => {
  const log: { at: number }[] = [];
  const news = newsOf(async () => [...log]);
  expect(await news()).toEqual([]);
  log.push({ at: 1 }, { at: 2 }, { at: 3 });
  expect(await news()).toEqual([{ at: 1 }, { at: 2 }, { at: 3 }]);
  expect(await news()).toEqual([]);
  // Shorter than before; as long as before; and with nothing left of what was seen.
  log.splice(0, log.length, { at: 3 }, { at: 4 });
  expect(await news()).toEqual([{ at: 4 }]);
  log.splice(0, log.length, { at: 4 }, { at: 5 });
  expect(await news()).toEqual([{ at: 5 }]);
  log.splice(0, log.length, { at: 8 });
  expect(await news()).toEqual([{ at: 8 }]);
});
