import { expect, test } from "vitest";
import { z } from "zod";
import { concerns, defineEvent } from "./define-event.ts";
import { type EventFor, eventFamily, typesFor } from "./event-family.ts";
import { type Handlers, handle } from "./handlers.ts";

const Weighed = defineEvent("thing.weighed", 1, concerns("facts", "terminal"), { grams: z.int() });
const Dropped = defineEvent("thing.dropped", 1, concerns("facts"), {});
const Seen = defineEvent("thing.seen", 1, concerns(), {});
const things = eventFamily([Weighed, Dropped, Seen]);
type Facts = { grams: number; dropped: boolean };

const handlers: Handlers<EventFor<typeof things, "facts">, Facts> = {
  "thing.weighed": ({ data }, facts) => {
    facts.grams = data.grams;
  },
  "thing.dropped": (_, facts) => {
    facts.dropped = true;
  },
};

test("calls its group's handler for an event, and skips other events", () => {
  const facts: Facts = { grams: 0, dropped: false };
  for (const event of [Weighed.make({ grams: 5 }), Dropped.make({}), Seen.make({})]) handle(handlers, event, facts);
  expect(facts).toEqual({ grams: 5, dropped: true });
  const lines: Handlers<EventFor<typeof things, "terminal">, void, string> = { "thing.weighed": ({ data }) => `${data.grams} g` };
  expect([Weighed.make({ grams: 5 }), Dropped.make({})].map((event) => handle(lines, event, undefined))).toEqual(["5 g", undefined]);
});

test("does not treat Object's methods as handlers", () => {
  for (const type of ["constructor", "toString", "__proto__"])
    expect(handle(handlers, { type }, { grams: 0, dropped: false })).toBeUndefined();
});

test("lists the event types of a group", () => {
  expect(typesFor(things, "facts")).toEqual(["thing.weighed", "thing.dropped"]);
  expect(typesFor(things, "recall")).toEqual([]);
});

test("does not compile with a missing or an extra handler", () => {
  const weighed = () => "";
  // @ts-expect-error: thing.dropped concerns facts as well.
  const tooFew: Handlers<EventFor<typeof things, "facts">, void, string> = { "thing.weighed": weighed };
  // @ts-expect-error: thing.dropped does not concern terminals.
  const tooMany: Handlers<EventFor<typeof things, "terminal">, void, string> = { "thing.weighed": weighed, "thing.dropped": weighed };
  // @ts-expect-error: there is no such event.
  const unknown: Handlers<EventFor<typeof things, "terminal">, void, string> = { "thing.weighed": weighed, "thing.lost": weighed };
  expect([tooFew, tooMany, unknown]).toHaveLength(3);
});
