import { expect, test } from "vitest";
import { createSharedHolds } from "./shared-holds.ts";

function tell() {
  const events: string[] = [];
  const take = async (id: string) => {
    events.push(`took ${id}`);
    return {
      async [Symbol.asyncDispose]() {
        events.push(`left ${id}`);
      },
    };
  };
  return { told: events, take };
}

test("shares a hold among concurrent callers, and releases it with the last", async () => {
  const { told: events, take } = tell();
  const holds = createSharedHolds(take, { openMs: 600_000, pauseMs: 1 });
  const [one, two, other] = await Promise.all([holds.hold("a"), holds.hold("a"), holds.hold("b")]);
  await one[Symbol.asyncDispose]();
  expect(events).toEqual(["took a", "took b"]);
  const three = await holds.hold("a");
  await two[Symbol.asyncDispose]();
  expect(events).toEqual(["took a", "took b"]);
  await three[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
  expect(events).toEqual(["took a", "took b", "left a", "left b"]);
});

test("does not join an old hold, so overlapping holds still end", async () => {
  const { told: events, take } = tell();
  const holds = createSharedHolds(take, { openMs: 0, pauseMs: 1 });
  const one = await holds.hold("a");
  const late = [holds.hold("a"), holds.hold("a")];
  const first = await Promise.race([...late.map((hold) => hold.then(() => "joined")), one[Symbol.asyncDispose]().then(() => "left")]);
  expect(first).toBe("left");
  expect(events).toEqual(["took a", "left a"]);
  for (const hold of late) await (await hold)[Symbol.asyncDispose]();
  expect(events.at(-1)).toBe("left a");
});

test("rejects all callers if taking a hold fails, and retries for the next", async () => {
  const { told: events, take } = tell();
  let failing = true;
  const holds = createSharedHolds(async (id) => (failing ? Promise.reject(new Error("in use")) : await take(id)), {
    openMs: 600_000,
    pauseMs: 1,
  });
  const both = [holds.hold("a"), holds.hold("a")];
  for (const hold of both) await expect(hold).rejects.toThrow("in use");
  failing = false;
  await using _ = await holds.hold("a");
  expect(events).toEqual(["took a"]);
});
