import { expect, test } from "vitest";
import { sweepRegularly } from "./sweep-regularly.ts";

test("continues sweeping after a failed sweep, until it is stopped", async () => {
  const end = new AbortController();
  const defects: unknown[] = [];
  let sweeps = 0;
  const third = Promise.withResolvers<void>();
  const sweep = async () => {
    sweeps += 1;
    if (sweeps === 3) third.resolve();
    if (sweeps === 1) throw new Error("a full disk");
  };
  const sweeping = sweepRegularly(sweep, { everyMs: 1, onDefect: (error) => defects.push(error), signal: end.signal });
  await third.promise;
  end.abort();
  await sweeping;
  expect(defects).toEqual([new Error("a full disk")]);
  const swept = sweeps;
  await sweepRegularly(sweep, { everyMs: 1, onDefect: () => {}, signal: end.signal });
  expect(sweeps).toBe(swept);
});
