import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createScriptedModel } from "../agent/model/scripted-model.ts";
import { AgentDefinition } from "../contract/agent/agent.ts";
import { createFakeRuntime } from "../runtimes/fake/runtime.ts";
import { createSession } from "../station/sessions/create-session.ts";
import { readEnvironment } from "./environment.ts";
import { openProgramStation } from "./program-station.ts";
import { type ContinueAgentOptions, continueAgent, forkAgent, rewindAgent, startAgent } from "./start-agent.ts";

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "caisson-test-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const model = createScriptedModel({
  turns: [{ say: "Done." }, { say: "Again.", expect: { contains: ["do it", "Done."], news: ["more"] } }],
});
const runtime = createFakeRuntime();
const open = () =>
  openProgramStation({
    environment: readEnvironment({ HOME: dir, PATH: "", CAISSON_HOME: join(dir, "state") }),
    folder: dir,
    model,
    runtimes: { runtime: async () => runtime, withNetwork: async (inner) => inner },
  });
const start = async (task: string) => {
  await using station = open();
  return await startAgent(station, { task, model, agent: "coder", folder: dir });
};
const continueAgentRun = async (options: ContinueAgentOptions) => {
  await using station = open();
  return await continueAgent(station, options);
};
const sessions = () => (existsSync(join(dir, "state", "sessions")) ? readdirSync(join(dir, "state", "sessions")) : []);

test("runs an agent to its end in a separate session", async () => {
  const { run, session, reason } = await start("do it");
  expect([session, reason]).toEqual([run, "done"]);
  expect(sessions()).toEqual([run]);
});

test("continues a run with its conversation, reporting only new events", async () => {
  const { run } = await start("do it");
  const types: string[] = [];
  const again = await continueAgentRun({ run, text: "more", onRunEvent: ({ type }) => types.push(type) });
  expect(again).toMatchObject({ run, session: run, reason: "done", text: "Again.", steps: 2 });
  expect([types[0], types.at(-1)]).toEqual(["run.reopened", "run.ended"]);
  await expect(continueAgentRun({ run })).rejects.toMatchObject({ code: "conflict" });
});

test("forks a run, and takes it back to a step", async () => {
  const { run } = await start("do it");
  await using station = open();
  const types: string[] = [];
  const [fork] = await forkAgent(station, { run, text: "more", onRunEvent: ({ type }) => types.push(type) });
  expect(fork).toMatchObject({ outcome: { run: fork?.run, reason: "done", text: "Again.", steps: 2 } });
  expect([types[0], types.at(-1)]).toEqual(["run.forked", "run.ended"]);
  const [waiting] = await forkAgent(station, { run });
  expect(waiting?.outcome).toBeNull();
  expect(await continueAgent(station, { run: waiting?.run ?? "", text: "more" })).toMatchObject({ reason: "done", steps: 2 });
  const { tail, files } = await rewindAgent(station, { run, to: 0 });
  expect(files).toEqual([]);
  expect(sessions().sort()).toEqual([run, fork?.run, waiting?.run, tail].sort());
  await continueAgent(station, { run, text: "do it" });
});

test("leaves no session if a run cannot be created", async () => {
  // Each character takes six bytes in the log.
  await expect(start("\u0001".repeat(1024 * 1024))).rejects.toMatchObject({ code: "too_large" });
  expect(sessions()).toEqual([]);
});

test("refuses an OCI runtime that a program cannot choose, with a hint", async () => {
  const agent = AgentDefinition.parse({ name: "on-crun", system: "You work.", sandbox: { ociRuntime: "crun" } });
  await using station = open();
  await expect(startAgent(station, { task: "do it", model, agent, folder: dir })).rejects.toMatchObject({
    code: "unsupported",
    hint: expect.stringContaining("caisson resume"),
  });
});

test("removes a half-created session of a dead process before the next run", async () => {
  await using station = open();
  const creation = Promise.withResolvers<void>();
  const dead = { ...station.core.identity, startTicks: station.core.identity.startTicks + 1 };
  void createSession(
    { ...station.core, identity: dead },
    { session: { id: "half", name: "half", source: { kind: "empty" }, scope: "session", cleanup: "never" }, note: "run_half" },
    () => {
      creation.resolve();
      return new Promise<never>(() => {});
    },
  );
  await creation.promise;
  expect(sessions().sort()).toEqual([".making-run_half", "half"]);
  const { run } = await start("do it");
  expect(sessions()).toEqual([run]);
});
