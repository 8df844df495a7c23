import { expect, test } from "vitest";
import { createFakeRuntime } from "../../runtimes/fake/runtime.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { openConformanceRun } from "./run-conformance.ts";

test("removes a sandbox that is created too late for its test", async () => {
  const good = createFakeRuntime();
  const late = Promise.withResolvers<void>();
  const slow: Runtime = Object.create(good, {
    create: {
      async value(...args: Parameters<Runtime["create"]>) {
        await late.promise;
        return await good.create(...args);
      },
    },
  });
  await using run = await openConformanceRun(slow, { patienceMs: 100 });
  const result = await run.run({
    name: "made",
    async run(context) {
      await context.create({}).finally(() => late.resolve());
      return undefined;
    },
  });
  expect(result).toMatchObject({ outcome: "failed", error: { message: expect.stringContaining("creating a sandbox took longer") } });
  expect(await good.list()).toEqual([]);
});
