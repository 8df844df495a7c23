import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createScriptedModel } from "../../agent/model/scripted-model.ts";
import { createFakeRuntime } from "../../runtimes/fake/runtime.ts";
import { continueAgent, startAgent } from "./start-agent.ts";

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "caisson-test-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const model = createScriptedModel({
  turns: [{ say: "Done." }, { say: "Again.", expect: { contains: ["do it", "Done."], news: ["more"] } }],
});
const runtime = createFakeRuntime();
const program = () => ({
  stateDir: join(dir, "state"),
  model,
  runtime: async () => runtime,
  env: {},
  path: "",
  home: dir,
});
const start = (task: string) => startAgent({ ...program(), task, agent: "coder", folder: dir });
const sessions = () => (existsSync(join(dir, "state", "sessions")) ? readdirSync(join(dir, "state", "sessions")) : []);

test("a run from its task to its end, in a session of its own", async () => {
  const { run, session, reason } = await start("do it");
  expect([session, reason]).toEqual([run, "done"]);
  expect(sessions()).toEqual([run]);
});

test("the next turn of a run has its conversation, and tells its own events", async () => {
  const { run } = await start("do it");
  const types: string[] = [];
  const again = await continueAgent({ ...program(), run, text: "more", onRunEvent: ({ type }) => types.push(type) });
  expect(again).toMatchObject({ run, session: run, reason: "done", text: "Again.", steps: 2 });
  expect([types[0], types.at(-1)]).toEqual(["run.reopened", "run.ended"]);
  await expect(continueAgent({ ...program(), run })).rejects.toMatchObject({ code: "conflict" });
});

test("a run that cannot be made leaves no session", async () => {
  await expect(start("x".repeat(5 * 1024 * 1024))).rejects.toMatchObject({ code: "too_large" });
  expect(sessions()).toEqual([]);
});
