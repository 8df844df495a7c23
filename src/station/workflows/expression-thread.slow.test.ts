import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { createExpressionThread } from "./expression-thread.ts";

const owner = "ada";

test("evaluates expressions in a thread, with owners taking turns", async () => {
  await using thread = createExpressionThread();
  const order: string[] = [];
  const ask = async (expression: string, of: string) => {
    const known = await thread.evaluate({ expression, scope: { input: { n: 2 } } }, { owner: of });
    order.push(of);
    return known;
  };
  const answers = await Promise.all([
    ask("input.n + 1", "ada"),
    ask("input.n + 2", "ada"),
    ask("input.n + 3", "ada"),
    ask("input.n", "bob"),
  ]);
  expect(answers).toEqual([{ value: 3 }, { value: 4 }, { value: 5 }, { value: 2 }]);
  expect(order.indexOf("bob")).toBeLessThan(3);
});

test("a failure names the expression, the reason and a hint", async () => {
  await using thread = createExpressionThread();
  const list = Array.from({ length: 900 }, (_, index) => index);
  const expression = "input.list.all(a, input.list.all(b, input.list.all(c, a >= 0)))";
  const known = await thread.evaluate({ expression, scope: { input: { list } } }, { owner });
  expect(known).toMatchObject({
    error: { code: "too_large", message: expect.stringContaining("steps"), hint: expect.stringContaining("Do less") },
  });
  expect(await thread.evaluate({ expression: "input.none", scope: { input: {} } }, { owner })).toMatchObject({
    error: { code: "invalid" },
  });
});

test("ends an evaluation that takes too long, and starts a new thread for the next", async () => {
  // With a limit of zero, every evaluation takes too long.
  await using hasty = createExpressionThread({ timeMaxMs: 0 });
  const known = await hasty.evaluate({ expression: "1 + 1", scope: {} }, { owner });
  expect(known).toMatchObject({ error: { code: "timeout", message: expect.stringContaining("takes longer than") } });
  expect(await hasty.evaluate({ expression: "1 + 1", scope: {} }, { owner })).toMatchObject({ error: { code: "timeout" } });
});

test("does not block the event loop during an evaluation", async () => {
  await using thread = createExpressionThread();
  await thread.evaluate({ expression: "1", scope: {} }, { owner });
  let turns = 0;
  let isDone = false;
  const list = Array.from({ length: 900 }, (_, index) => index);
  const done = thread.evaluate({ expression: "input.list.all(a, input.list.all(b, a >= 0))", scope: { input: { list } } }, { owner });
  void done.then(() => {
    isDone = true;
  });
  while (!isDone) {
    turns += 1;
    await delay(1);
  }
  expect(await done).toMatchObject({ error: { code: "too_large" } });
  expect(turns).toBeGreaterThan(3);
});
