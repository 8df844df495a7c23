import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createScriptedModel } from "../../agent/model/scripted-model.ts";
import { createFakeRuntime } from "../../runtimes/fake/runtime.ts";
import { startAgent } from "./start-agent.ts";

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "caisson-test-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const start = (task: string) =>
  startAgent({
    stateDir: join(dir, "state"),
    task,
    model: createScriptedModel({ turns: [{ say: "Done." }] }),
    agent: "coder",
    folder: dir,
    runtime: async () => createFakeRuntime(),
    env: {},
    path: "",
    home: dir,
  });
const sessions = () => (existsSync(join(dir, "state", "sessions")) ? readdirSync(join(dir, "state", "sessions")) : []);

test("a run from its task to its end, in a session of its own", async () => {
  const { run, session, reason } = await start("do it");
  expect([session, reason]).toEqual([run, "done"]);
  expect(sessions()).toEqual([run]);
});

test("a run that cannot be made leaves no session", async () => {
  await expect(start("x".repeat(5 * 1024 * 1024))).rejects.toMatchObject({ code: "too_large" });
  expect(sessions()).toEqual([]);
});
