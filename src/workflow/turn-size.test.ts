import { expect, test } from "vitest";
import { emptyJobFacts } from "../contract/durable/durable-job.ts";
import { decideWorkflow } from "./decide.ts";
import { evaluateHere } from "./expressions/evaluate.ts";
import { applyToWorkflow, emptyWorkflow } from "./state.ts";

test("bounds the events of a turn of 1,000 × 1,000 steps, and continues in the next", async () => {
  const inner = { name: "b", kind: "foreach", in: "input.l", concurrency: 100, steps: [{ name: "c", kind: "set", data: { x: 1 } }] };
  const definition = { name: "x", steps: [{ name: "a", kind: "foreach", in: "input.l", concurrency: 100, steps: [inner] }] };
  const input = { l: Array.from({ length: 1000 }, (_, n) => n) };
  const state = Object.assign(emptyWorkflow(), { definition, input });
  const now = new Date();
  const sizes: number[] = [];
  for (let turn = 0; turn < 10; turn++) {
    const decision = await decideWorkflow(state, { facts: { ...emptyJobFacts(), id: "wf_aaaaaaaaaaaa" }, now }, evaluateHere);
    if (!("append" in decision)) break;
    sizes.push(decision.append.length);
    for (const event of decision.append)
      applyToWorkflow(state, { ...event, at: now.toISOString() } as Parameters<typeof applyToWorkflow>[1]);
  }
  expect(sizes).toHaveLength(10);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(102);
  expect(state.steps.size).toBeGreaterThan(500);
});
