import { afterAll, beforeAll, expect, test } from "vitest";
import { makeEvent } from "../../contract/event/event-family.ts";
import { type NewRunEvent, runEvents } from "../../contract/run/run-event.ts";
import { recallTool } from "./recall.ts";
import { createWorkbench, type Workbench } from "./testing-tools.ts";

let bench: Workbench;
beforeAll(async () => {
  bench = await createWorkbench();
});
afterAll(() => bench[Symbol.asyncDispose]());

test("searches everything that happened in the run, and shows one call in full", async () => {
  const add = (event: NewRunEvent) => bench.events.push(makeEvent(runEvents, event));
  add({ type: "tool.requested", data: { call: "t7.1", step: 7, name: "bash", arguments: { command: "make TESTS" } } });
  add({
    type: "tool.ended",
    data: { call: "t7.1", outcome: "error", text: `${"x".repeat(1000)} undefined reference to frobnicate`, durationMs: 1 },
  });
  add({ type: "message.received", data: { message: "msg_aaaaaaaaaaaa", source: "user", mode: "steer", text: "The tests are in test/" } });
  const recall = async (args: object) => (await bench.use(recallTool, args)).text;
  expect(await recall({ query: "FROBNICATE reference" })).toMatch(/^t7\.1: ….*undefined reference to frobnicate$/);
  expect((await recall({ query: "tests" })).split("\n")).toEqual(["user: The tests are in test/", 't7.1: bash {"command":"make TESTS"}']);
  expect(await recall({ call: "t7.1" })).toMatch(/^bash .*\n\n→ x{1000} undefined/s);
  expect(await recall({ query: "never said" })).toContain("No matches");
  expect(await bench.use(recallTool, {})).toMatchObject({ outcome: "error" });
});
