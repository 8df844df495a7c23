import { expect, test } from "vitest";
import { createCreationPlaces } from "./creation-places.ts";

const quietLoop = { loopDelayMs: () => 0 };

/** As many as there are at once. */
async function takeAll(places: ReturnType<typeof createCreationPlaces>): Promise<Disposable[]> {
  const taken: Disposable[] = [];
  for (let at = 0; at < 6; at++) taken.push((await places.take("runs.start", "owner ada")) as Disposable);
  return taken;
}

test("other calls need no place", async () => {
  using places = createCreationPlaces(quietLoop);
  expect(await places.take("runs.list", "owner ada")).toBeNull();
});

test("a creation waits until another one is answered", async () => {
  using places = createCreationPlaces(quietLoop);
  const [first] = await takeAll(places);
  const order: string[] = [];
  const next = places.take("workflows.start", "owner ada").then(() => order.push("taken"));
  order.push("released");
  first?.[Symbol.dispose]();
  await next;
  expect(order).toEqual(["released", "taken"]);
});

test("a creation that would wait too long is refused with the time to try again", async () => {
  using places = createCreationPlaces(quietLoop);
  await takeAll(places);
  const refused = places.take("runs.start", "owner ada");
  await expect(refused).rejects.toMatchObject({ code: "unavailable", details: { retryAfterSeconds: 1, overload: true } });
  expect(places.figures().refused.work).toBe(1);
});

test("an owner with few creations is served before one with many", async () => {
  using places = createCreationPlaces(quietLoop);
  const taken = await takeAll(places);
  const order: string[] = [];
  const waiting = [
    ...Array.from({ length: 5 }, () => places.take("runs.start", "owner ada").then(() => order.push("ada"))),
    places.take("runs.start", "owner bob").then(() => order.push("bob")),
  ];
  for (const place of taken) place[Symbol.dispose]();
  await Promise.all(waiting);
  expect(order.indexOf("bob")).toBeLessThan(2);
});
