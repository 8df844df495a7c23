import { mkdtempDisposable } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { createTestStation, type TestStation } from "../../../test/support/testing-runs.ts";
import { AgentDefinition } from "../../contract/agent/agent.ts";
import type { FedEvent } from "../../contract/feed/fed-event.ts";
import type { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { Log } from "../../log/log.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import type { Runtime } from "../../sandbox/runtime.ts";

const done = { turns: [{ say: "Done." }] };
const endless = { turns: [{ say: "word ".repeat(2000), pauseMs: 20 }] };
const write = (path: string) => ({ tool: "write", arguments: { path, content: "x" } });

/** Runs an agent that asks no questions, over the rig's folder, to its end. */
async function finished(station: TestStation, request: Partial<Parameters<TestStation["verbs"]["runs"]["start"]>[0]> = {}) {
  const { run } = await station.verbs.runs.start({ task: "do it", source: { kind: "folder", path: station.folder }, ...request });
  return await station.verbs.runs.wait(run);
}

test("creates a run at once, drives it in the background, and waits for its end", async () => {
  await using station = await createTestStation({ script: done });
  const { runs, sessions } = station.verbs;
  const view = await runs.start({ task: " do it ", source: { kind: "folder", path: station.folder }, budgets: { costUsd: 3 } });
  expect(view).toMatchObject({ status: "created", title: "do it", session: view.run, seq: 1, agent: "coder", budgets: { costUsd: 3 } });
  const ended = await runs.wait(view.run);
  expect(ended).toMatchObject({ run: view.run, status: "ended", finish: "done", steps: 1, damage: null });
  expect(await runs.wait(view.run)).toEqual(await runs.get(view.run));
  expect(await sessions.get(view.run)).toMatchObject({ id: view.run, scope: "run", lock: null });
});

test("does not drive a detached run", async () => {
  await using station = await createTestStation({ script: done });
  const { run } = await station.verbs.runs.start({ task: "do it", detached: true });
  expect(station.detached).toEqual([run]);
  expect(await station.verbs.runs.get(run)).toMatchObject({ status: "created", seq: 1 });
});

test("creates nothing for invalid requests", async () => {
  await using station = await createTestStation({ script: done });
  const { runs, sessions } = station.verbs;
  const refused: [Parameters<typeof runs.start>[0], string][] = [
    [{ task: "  " }, "invalid"],
    [{ task: "do it", settings: { maxSteps: 0 } }, "invalid"],
    [{ task: "do it", session: { id: "../up" } }, "invalid"],
    [{ task: "do it", source: { kind: "folder", path: `${station.folder}/none` } }, "not_found"],
    [{ task: "do it", source: { kind: "git", url: "ext::sh -c true" } }, "invalid"],
    [{ task: "do it", settings: { secretNames: ["TOKEN"] } }, "not_found"],
    [
      { task: "do it", settings: { network: { mode: "none" }, secrets: { TOKEN: { from: { kind: "value", value: "x" } } as never } } },
      "invalid",
    ],
  ];
  for (const [request, code] of refused) await expect(runs.start(request), JSON.stringify(request)).rejects.toMatchObject({ code });
  expect((await sessions.list()).sessions).toEqual([]);
  expect((await runs.list()).total).toBe(0);
});

test("stores the request's sandbox settings in the run for the next driver", async () => {
  const configs: SandboxConfig[] = [];
  const wrapRuntime = (runtime: Runtime): Runtime => ({
    ...runtime,
    async create(config, options) {
      configs.push(config);
      return await runtime.create(config, options);
    },
  });
  const script = { turns: [{ calls: [{ tool: "bash", arguments: { command: "echo" } }] }, { say: "Done." }] };
  await using station = await createTestStation({ script, files: { ".env": "TOKEN=x" }, wrapRuntime });
  await using data = await mkdtempDisposable(join(tmpdir(), "caisson-data-"));
  const mounts = [{ path: data.path, target: "/mnt/data", access: "overlay" as const }];
  const settings = { env: { A: "1" }, allowRoot: true, mounts, mountGuard: { allowHooks: false } };
  await finished(station, {
    settings: { ...settings, limits: {} },
    agent: AgentDefinition.parse({ name: "x", system: "", sandbox: { env: { B: "2" } } }),
  });
  expect(configs).toMatchObject([{ env: { A: "1", B: "2" }, allowRoot: true, mounts }]);
  const [run] = (await station.verbs.runs.list()).runs;
  const [created] = await station.events(run?.run ?? "");
  expect(created?.data).toMatchObject({ agent: { definition: { sandbox: { mounts, mountGuard: { allowHooks: false } } } } });
  const snapshot = { task: "do it", settings: { snapshot: "sn_aaaaaaaaaaaa", image: "x" } };
  await expect(station.verbs.runs.start(snapshot)).rejects.toMatchObject({ code: "invalid" });
  for (const [path, target] of [
    ["/", "/mnt/x"],
    ["/etc", "/mnt/x"],
    [data.path, "/workspace/x"],
  ] as const)
    await expect(station.verbs.runs.start({ task: "do it", settings: { mounts: [{ path, target }] } })).rejects.toMatchObject({
      code: "invalid",
    });
});

test("rejects other workspaces for an agent that needs a lasting one", async () => {
  const agents = { keeper: { workspace: { scope: "session" as const, cleanup: "never" as const } } };
  await using station = await createTestStation({ script: done, agents });
  const { runs, sessions } = station.verbs;
  const request = { task: "do it", agent: "keeper" };
  await expect(runs.start(request)).rejects.toMatchObject({ code: "invalid", hint: expect.stringContaining("--session NAME") });
  await expect(runs.start({ ...request, session: { id: "workflow-w", scope: "workflow" } })).rejects.toMatchObject({ code: "invalid" });
  expect((await sessions.list()).sessions).toEqual([]);
  expect(await finished(station, { ...request, session: { id: "mine" } })).toMatchObject({ finish: "done", session: "mine" });
  // The named session exists by now and keeps the scope it was created with.
  expect(await finished(station, { ...request, session: { id: "mine" }, source: undefined })).toMatchObject({ session: "mine" });
});

test("a session that already has a workspace accepts no other", async () => {
  await using station = await createTestStation({ script: done });
  await finished(station, { session: { id: "mine" } });
  await expect(finished(station, { session: { id: "mine" } })).rejects.toMatchObject({
    code: "invalid",
    message: expect.stringMatching(/already has a workspace/),
  });
});

test("the caller's settings override the agent's; an unattended run asks nothing", async () => {
  const secrets = { TOKEN: { hosts: ["api.example.org"], from: "env" } as never };
  await using station = await createTestStation({ script: done, secrets, agents: { coder: { harness: { maxSteps: 7 } as never } } });
  const definitionOf = async (settings: object, attended = false) => {
    const { run } = await station.verbs.runs.start({ task: "do it", settings, attended, detached: true });
    return (await station.runs.state(run)).definition;
  };
  expect((await definitionOf({})).harness).toMatchObject({ maxSteps: 7, onAsk: "deny", onBudget: "stop" });
  expect((await definitionOf({}, true)).harness).toMatchObject({ onAsk: "wait", onBudget: "ask" });
  expect((await definitionOf({ maxSteps: 9, onAsk: "wait" })).harness).toMatchObject({ maxSteps: 9, onAsk: "wait", onBudget: "stop" });
  const { sandbox, permissions } = await definitionOf({ secretNames: ["TOKEN"], permissions: { "bash:*": "deny" } });
  expect(Object.keys(sandbox.secrets)).toEqual(["TOKEN"]);
  expect(sandbox.network).toMatchObject({ mode: "allow", rules: [{ host: "api.example.org" }] });
  expect(permissions).toEqual({ "bash:*": "deny" });
  expect((await definitionOf({ permissions: "strict" })).permissions).toMatchObject({ "bash:rm -rf*": "deny", "bash:git commit*": "ask" });
});

test("settings replace the agent's size of /tmp and add to its protected paths", async () => {
  const sandbox = { tmpBytes: 2 ** 21, readOnlyPaths: ["/workspace/a"], env: { A: "1", B: "1" } };
  await using station = await createTestStation({ script: done, agents: { coder: { sandbox: sandbox as never } } });
  const settings = { tmpBytes: 2 ** 22, readOnlyPaths: ["/workspace/b"], deniedPaths: ["/opt"], env: { B: "2" } };
  const { run } = await station.verbs.runs.start({ task: "do it", settings, detached: true });
  expect((await station.runs.state(run)).definition.sandbox).toMatchObject({
    tmpBytes: 2 ** 22,
    readOnlyPaths: ["/workspace/a", "/workspace/b"],
    deniedPaths: ["/opt"],
    env: { A: "1", B: "2" },
  });
});

test("lists runs page by page without reading any run log", async () => {
  const script = {
    turns: [{ calls: [{ tool: "agent", arguments: { agent: "helper", task: "help" } }] }, { say: "Done." }],
    agents: { helper: [{ say: "Helped." }] },
  };
  const log = createMemoryLog();
  await using station = await createTestStation({ script, log, agents: { coder: { agents: ["helper"] }, helper: {} }, isReplayed: false });
  const { runs } = station.verbs;
  const parent = await finished(station);
  const open = await runs.start({ task: "later", session: { id: "other" }, detached: true });
  const read: Log["read"] = () => {
    throw new Error("the log was read");
  };
  log.read = read;
  const named = async (request: Parameters<typeof runs.list>[0]) => (await runs.list(request)).runs.map(({ run }) => run);
  const [sub = ""] = await named({ parent: parent.run });
  expect((await named({})).sort()).toEqual([parent.run, open.run, sub].sort());
  expect(await named({ state: "open" })).toEqual([open.run]);
  expect((await named({ state: "ended", finish: ["done"] })).sort()).toEqual([parent.run, sub].sort());
  expect(await named({ finish: ["timeout"] })).toEqual([]);
  expect(await named({ session: "other" })).toEqual([open.run]);
  expect((await named({ folder: station.folder })).sort()).toEqual([parent.run, sub].sort());
  expect(await named({ folder: station.folder, session: "other" })).toEqual([]);
  expect((await named({ parent: null })).sort()).toEqual([parent.run, open.run].sort());
  const pages: string[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page: Awaited<ReturnType<typeof runs.list>> = await runs.list({ limit: 2, ...(cursor === "" ? {} : { cursor }) });
    expect(page.total).toBe(3);
    pages.push(...page.runs.map(({ run }) => run));
    cursor = page.next;
  }
  expect(pages).toEqual(await named({}));
  await expect(runs.list({ cursor: "of my own making" })).rejects.toMatchObject({ code: "invalid" });
});

test("returns events from a number on, and follows them to the end of the run", async () => {
  await using station = await createTestStation({ script: done });
  const { runs } = station.verbs;
  const { run } = await runs.start({ task: "do it" });
  const seqs: number[] = [];
  for await (const { seq, type } of runs.events(run, { follow: true }))
    if (seqs.push(seq) && type === "run.ended") expect(seq).toBe(seqs.length);
  const late: number[] = [];
  for await (const { seq } of runs.events(run, { fromSeq: 3 })) late.push(seq);
  expect(late).toEqual(seqs.slice(2));
  // A follower that has seen the end does not wait; the timeout only makes a failure quick.
  const signal = AbortSignal.timeout(5_000);
  for (const fromSeq of [seqs.length + 1, seqs.length + 2])
    for await (const { seq } of runs.events(run, { fromSeq, follow: true, signal })) expect.unreachable(`${seq}`);
  expect(signal.aborted).toBe(false);
  const none = runs.events("run_aaaaaaaaaaaa")[Symbol.asyncIterator]();
  await expect(none.next()).rejects.toMatchObject({ code: "not_found" });
});

test("delivers the events of all runs once and in order, and can be resumed", async () => {
  await using station = await createTestStation({ script: done });
  const { runs } = station.verbs;
  const follow = async (afterPosition: number, until: (event: FedEvent) => boolean) => {
    const seen: FedEvent[] = [];
    for await (const event of runs.allEvents({ afterPosition })) {
      seen.push(event);
      if (until(event)) break;
    }
    return seen;
  };
  let endings = 0;
  const isOver = ({ event }: FedEvent) => event?.type === "run.ended" && ++endings === 3;
  const following = follow(0, isOver);
  const views = await Promise.all([1, 2, 3].map(() => finished(station)));
  const seen = await following;
  for (const { run } of views) {
    const own = seen.filter((event) => "run" in event && event.run === run);
    expect(own.map(({ seq }) => seq)).toEqual(Array.from({ length: own.length }, (_, n) => n + 1));
    expect(own.map(({ event }) => event)).toEqual(await station.events(run));
  }
  const middle = seen[Math.floor(seen.length / 2)]?.position ?? 0;
  const last = seen.at(-1)?.position;
  expect(await follow(middle, ({ position }) => position === last)).toEqual(seen.filter(({ position }) => position > middle));
});

test("an abandoned run stays as it is, fails its waiters, and can be resumed", async () => {
  await using station = await createTestStation({ script: { turns: [{ calls: [write("a.txt")] }, ...endless.turns] } });
  const { runs } = station.verbs;
  const releaseController = new AbortController();
  const { run } = await runs.start(
    { task: "do it", source: { kind: "folder", path: station.folder } },
    { signal: releaseController.signal },
  );
  await station.until(run, "tool.ended");
  const waiting = runs.wait(run);
  releaseController.abort();
  await expect(waiting).rejects.toMatchObject({ code: "cancelled", message: expect.stringContaining("released the run") });
  await expect(runs.wait(run)).rejects.toMatchObject({ code: "cancelled" });
  expect(await runs.get(run)).toMatchObject({ status: "interrupted", finish: null });
  const before = await runs.resume(run, { by: "me" });
  expect(before.status).toBe("interrupted");
  await station.until(run, "run.claimed", () => true);
  await runs.stop(run, { by: "me" });
  expect(await runs.get(run)).toMatchObject({ status: "ended", finish: "cancelled" });
  await runs.stop(run, { by: "me" });
});

test("pauses and resumes a run within its driver", async () => {
  await using station = await createTestStation({ script: { turns: [{ say: "word ".repeat(50), pauseMs: 5 }, { say: "Done." }] } });
  const { runs } = station.verbs;
  const { run } = await runs.start({ task: "do it" });
  await station.until(run, "model.requested");
  await runs.pause(run, { text: "wait" });
  expect(await runs.get(run)).toMatchObject({ status: "paused", paused: { why: "user", text: "wait" } });
  await runs.resume(run, { by: "me" });
  expect(await runs.wait(run)).toMatchObject({ finish: "done" });
  expect((await station.events(run)).filter(({ type }) => type === "run.claimed")).toHaveLength(1);
});

test("cancels waiting and stopping with their signal, but still stops the run", async () => {
  await using station = await createTestStation({ script: endless });
  const { runs } = station.verbs;
  const { run } = await runs.start({ task: "do it", detached: true });
  const signal = AbortSignal.abort();
  await expect(runs.wait(run, { signal })).rejects.toMatchObject({ code: "cancelled" });
  const driven = await runs.start({ task: "do it" });
  await station.until(driven.run, "model.requested");
  await expect(runs.stop(driven.run, { by: "me", signal })).rejects.toMatchObject({ code: "cancelled" });
  expect(await runs.wait(driven.run)).toMatchObject({ finish: "cancelled" });
  // It has no driver, so the request alone ends it.
  await runs.stop(run, { by: "me", signal });
  expect(await runs.get(run)).toMatchObject({ finish: "cancelled" });
});

test("raises a budget by half if the answer names no value", async () => {
  await using station = await createTestStation({ script: { costUsdPerCall: 2, turns: [{ calls: [write("a.txt")] }, { say: "Done." }] } });
  const { runs } = station.verbs;
  const { run } = await runs.start({
    task: "do it",
    budgets: { costUsd: 2 },
    attended: true,
    source: { kind: "folder", path: station.folder },
  });
  await station.until(run, "permission.asked");
  expect((await runs.get(run)).asked).toMatchObject([{ kind: "budget" }]);
  await runs.answer(run, { answer: "allow", by: "me", budgets: { steps: 77 } });
  expect(await runs.wait(run)).toMatchObject({ finish: "done", budgets: { costUsd: 3, steps: 77 } });
  await expect(runs.answer(run, { answer: "allow", by: "me" })).rejects.toMatchObject({ code: "conflict" });
});

test("resumes an abandoned run in a separate process and waits until it starts", async () => {
  await using station = await createTestStation({ script: { turns: [{ calls: [write("a.txt")] }, ...endless.turns] } });
  const { runs } = station.verbs;
  const releaseController = new AbortController();
  const { run } = await runs.start(
    { task: "do it", source: { kind: "folder", path: station.folder } },
    { signal: releaseController.signal },
  );
  await station.until(run, "tool.ended");
  releaseController.abort();
  await expect(runs.wait(run)).rejects.toMatchObject({ code: "cancelled" });
  const { seq } = await runs.get(run);
  const resuming = runs.resume(run, { by: "me", detached: true });
  await vi.waitUntil(() => station.detached.includes(run), { timeout: 60_000 });
  await runs.resume(run, { by: "the separate process" });
  expect((await resuming).status).toBe("interrupted");
  expect((await station.events(run)).slice(seq).map(({ type }) => type)).toContain("run.claimed");
  await runs.stop(run, { by: "me" });
});
