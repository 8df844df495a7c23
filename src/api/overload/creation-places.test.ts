import { expect, test } from "vitest";
import { createCreationPlaces } from "./creation-places.ts";

const quietLoop = { loopDelayMs: () => 0 };

/** Takes all places. */
async function takeAll(places: ReturnType<typeof createCreationPlaces>): Promise<Disposable[]> {
  const takenPlaces: Disposable[] = [];
  for (let at = 0; at < 6; at++) takenPlaces.push((await places.take("runs.start", "owner ada")) as Disposable);
  return takenPlaces;
}

test("gives no place to calls that create nothing", async () => {
  using places = createCreationPlaces(quietLoop);
  expect(await places.take("runs.list", "owner ada")).toBeNull();
});

test("makes a creation wait until another one is answered", async () => {
  using places = createCreationPlaces(quietLoop);
  const [first] = await takeAll(places);
  const order: string[] = [];
  const next = places.take("workflows.start", "owner ada").then(() => order.push("taken"));
  order.push("released");
  first?.[Symbol.dispose]();
  await next;
  expect(order).toEqual(["released", "taken"]);
});

test("refuses a creation that would wait too long, with a retry time", async () => {
  using places = createCreationPlaces(quietLoop);
  await takeAll(places);
  const refused = places.take("runs.start", "owner ada");
  await expect(refused).rejects.toMatchObject({ code: "unavailable", details: { retryAfterSeconds: 1, overload: true } });
  expect(places.figures().refused.work).toBe(1);
});

test("serves an owner with few creations before one with many", async () => {
  using places = createCreationPlaces(quietLoop);
  const takenPlaces = await takeAll(places);
  const order: string[] = [];
  const waiting = [
    ...Array.from({ length: 5 }, () => places.take("runs.start", "owner ada").then(() => order.push("ada"))),
    places.take("runs.start", "owner bob").then(() => order.push("bob")),
  ];
  for (const place of takenPlaces) place[Symbol.dispose]();
  await Promise.all(waiting);
  expect(order.indexOf("bob")).toBeLessThan(2);
});
