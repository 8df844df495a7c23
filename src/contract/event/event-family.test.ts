import { expect, test } from "vitest";
import { z } from "zod";
import { concerns, defineEvent } from "./define-event.ts";
import { eventFamily, makeEvent, readableEvent, readEvent } from "./event-family.ts";

const at = "2026-01-02T03:04:05.000Z";
const Weighed1 = defineEvent("thing.weighed", 1, concerns(), { grams: z.int() });
const Weighed2 = defineEvent("thing.weighed", 2, concerns(), { weight: z.object({ grams: z.int() }) }).upcast(Weighed1, ({ grams }) => ({
  weight: { grams },
}));
const Weighed = defineEvent("thing.weighed", 3, concerns(), { weight: z.object({ grams: z.int(), by: z.string() }) }).upcast(
  Weighed2,
  ({ weight }) => ({
    weight: { ...weight, by: "unknown" },
  }),
);
const Thrown = defineEvent("thing.thrown", 1, concerns(), { metres: z.number() });
const family = eventFamily([Weighed, Thrown]);
const stored = (version: number, data: unknown) => ({ type: "thing.weighed", version, at, data, stream: "thing/1", seq: 7 });

test("creates events with the current version and time", () => {
  expect(Weighed.make({ weight: { grams: 1, by: "me" } }, at)).toEqual({
    type: "thing.weighed",
    version: 3,
    at,
    data: { weight: { grams: 1, by: "me" } },
  });
  expect(Date.parse(Thrown.make({ metres: 1 }).at)).toBeGreaterThan(Date.parse(at));
  expect(makeEvent(family, { type: "thing.thrown", data: { metres: 2 } }, at)).toEqual({
    type: "thing.thrown",
    version: 1,
    at,
    data: { metres: 2 },
  });
});

test("reads every earlier version as the current one", () => {
  const today = { type: "thing.weighed", version: 3, at, data: { weight: { grams: 5, by: "unknown" } } };
  expect(readEvent(family, stored(1, { grams: 5 }))).toEqual(today);
  expect(readEvent(family, stored(2, { weight: { grams: 5 } }))).toEqual(today);
  expect(readEvent(family, stored(3, { weight: { grams: 5, by: "unknown" } }))).toEqual(today);
});

test.each([
  [
    "a newer version",
    stored(4, {}),
    "event 7 of thing/1 cannot be understood: it has version 4 of thing.weighed, but this Caisson only knows versions up to 3",
  ],
  [
    "an unknown type",
    { ...stored(1, {}), type: "thing.eaten" },
    "event 7 of thing/1 cannot be understood: this Caisson does not know the event type thing.eaten",
  ],
  ["a version before the first", stored(0, {}), "event 7 of thing/1 cannot be understood: thing.weighed has no version 0"],
  [
    "old data that does not fit",
    stored(1, { grams: "s3cret" }),
    "event 7 of thing/1 cannot be understood: data.grams does not match version 1 of thing.weighed",
  ],
  [
    "what has no place",
    { type: "thing.weighed", version: 3, at, data: {} },
    "the event cannot be understood: data.weight does not match version 3 of thing.weighed",
  ],
  ["what the log found damaged", { ...stored(3, null), damage: "event 7 of thing/1 is not JSON" }, "event 7 of thing/1 is not JSON"],
])("rejects %s with an error, and skips it in a history", (_, event, message) => {
  expect(() => readEvent(family, event)).toThrow(expect.objectContaining({ code: "internal", message, hint: expect.any(String) }));
  expect(readableEvent(family, event)).toBeNull();
});

test("skips anything that is not an event in a history", () => {
  for (const nothing of [null, 5, {}, { type: "thing.thrown" }]) expect(readableEvent(family, nothing)).toBeNull();
});

test("accepts only an upcaster from the previous version of the same event", () => {
  const third = defineEvent("thing.weighed", 3, concerns(), { weight: z.object({ grams: z.int(), by: z.string() }) });
  expect(() => third.upcast(Weighed1, ({ grams }) => ({ weight: { grams, by: "" } }))).toThrow("made of version 2");
  expect(() => eventFamily([Weighed2, Weighed])).toThrow("same type");
});
