import { expect, test } from "vitest";
import { createSharedHolds } from "./shared-holds.ts";

function tell() {
  const told: string[] = [];
  const take = async (id: string) => {
    told.push(`took ${id}`);
    return {
      async [Symbol.asyncDispose]() {
        told.push(`left ${id}`);
      },
    };
  };
  return { told, take };
}

test("a hold is shared by those who want it at once, and ends with the last", async () => {
  const { told, take } = tell();
  const holds = createSharedHolds(take, { openMs: 600_000, pauseMs: 1 });
  const [one, two, other] = await Promise.all([holds.hold("a"), holds.hold("a"), holds.hold("b")]);
  await one[Symbol.asyncDispose]();
  expect(told).toEqual(["took a", "took b"]);
  const three = await holds.hold("a");
  await two[Symbol.asyncDispose]();
  expect(told).toEqual(["took a", "took b"]);
  await three[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
  expect(told).toEqual(["took a", "took b", "left a", "left b"]);
});

test("an old hold is not joined, so that holds without a pause between them end", async () => {
  const { told, take } = tell();
  const holds = createSharedHolds(take, { openMs: 0, pauseMs: 1 });
  const one = await holds.hold("a");
  const late = [holds.hold("a"), holds.hold("a")];
  const first = await Promise.race([...late.map((hold) => hold.then(() => "joined")), one[Symbol.asyncDispose]().then(() => "left")]);
  expect(first).toBe("left");
  expect(told).toEqual(["took a", "left a"]);
  for (const hold of late) await (await hold)[Symbol.asyncDispose]();
  expect(told.at(-1)).toBe("left a");
});

test("a hold that could not be taken is refused to all who wanted it, and tried anew by the next", async () => {
  const { told, take } = tell();
  let failing = true;
  const holds = createSharedHolds(async (id) => (failing ? Promise.reject(new Error("in use")) : await take(id)), {
    openMs: 600_000,
    pauseMs: 1,
  });
  const both = [holds.hold("a"), holds.hold("a")];
  for (const hold of both) await expect(hold).rejects.toThrow("in use");
  failing = false;
  await using _ = await holds.hold("a");
  expect(told).toEqual(["took a"]);
});
