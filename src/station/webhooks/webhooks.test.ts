import { createHmac } from "node:crypto";
import { statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { FedEvent, FedSandboxEvent } from "../../contract/feed/fed-event.ts";
import type { OutboundAnswer, OutboundPost } from "../../network/outbound/post-outbound.ts";
import { createLocalWebhooks, type LocalWebhooks } from "./local-webhooks.ts";

let stateDir = "";
let webhooks: LocalWebhooks;
let time = 0;
let posts: OutboundPost[] = [];
let answer: (post: OutboundPost) => OutboundAnswer | Promise<OutboundAnswer>;
let feed: FedEvent[] = [];
let waiters: (() => void)[] = [];
let ended: AbortController;
let working: Promise<void> | undefined;
const defects: unknown[] = [];

beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "caisson-test-webhooks-"));
  [posts, feed, waiters, defects.length] = [[], [], [], 0];
  time = Date.parse("2030-01-01T00:00:00Z");
  answer = () => ({ status: 204, retryAfterSeconds: null });
  ended = new AbortController();
  working = undefined;
  webhooks = open();
});
afterEach(async () => {
  await stop();
  await webhooks.close();
  await rm(stateDir, { recursive: true, force: true });
  expect(defects).toEqual([]);
});

function open(): LocalWebhooks {
  return createLocalWebhooks({
    stateDir,
    lastPosition: async () => feed.length,
    now: () => time,
    async post(post) {
      posts.push(post);
      return await answer(post);
    },
  });
}

/** The runs of a log that is a plain list. */
const runs = {
  async *allEvents({ afterPosition = 0, signal }: { afterPosition?: number; signal?: AbortSignal } = {}) {
    for (let at = afterPosition; signal?.aborted !== true; ) {
      const next = feed[at];
      if (next === undefined) {
        await new Promise<void>((resolve) => {
          waiters.push(resolve);
          signal?.addEventListener("abort", () => resolve(), { once: true });
        });
        continue;
      }
      at += 1;
      yield next;
    }
  },
  async *events(run: string, { fromSeq = 1 }: { fromSeq?: number } = {}) {
    for (const fed of feed)
      if ("run" in fed && fed.run === run && fed.seq >= fromSeq && fed.event !== null) yield { ...fed.event, seq: fed.seq };
  },
};
const inside = {
  async events(sandbox: string, { fromSeq = 1 }: { fromSeq?: number } = {}) {
    const own = feed.filter((fed): fed is FedSandboxEvent => "sandbox" in fed && fed.sandbox === sandbox && fed.seq >= fromSeq);
    return own.flatMap(({ event, seq }) => (event === null ? [] : [{ ...event, seq }]));
  },
};

/** The events of durable jobs of any kind. */
const driven = {
  async *events(id: string, { fromSeq = 1 }: { fromSeq?: number } = {}) {
    for (const fed of feed)
      if ("driven" in fed && fed.driven.id === id && fed.seq >= fromSeq && fed.event !== null) yield { ...fed.event, seq: fed.seq };
  },
};

function work(): void {
  ended = new AbortController();
  working = webhooks.deliver({
    stationFor: () => ({ runs, inside, workflows: driven, specs: driven, ships: driven, merges: driven, bests: driven }),
    onDefect: (error) => defects.push(error),
    signal: ended.signal,
  });
}

async function stop(): Promise<void> {
  ended.abort();
  await working;
}

function happen(type: "run.ended" | "model.streamed", run = "run_a"): void {
  const seq = feed.length + 1;
  const event = { type, version: 1, at: "2030-01-01T00:00:00.000Z", data: { n: seq } } as unknown as FedEvent["event"];
  feed.push({ run, seq, position: seq, event, damage: null } as FedEvent);
  for (const each of waiters.splice(0)) each();
}

const hook = { name: "chat", url: "https://hook.test/7" };
const bodies = () => posts.map(({ body }) => (JSON.parse(body) as { id: string }).id);
const states = async () => (await webhooks.deliveries("chat")).map(({ state, attempts }) => [state, attempts]);

describe("webhooks", () => {
  test("receive matching events as signed CloudEvents from their creation on", async () => {
    happen("run.ended");
    const { secret } = await webhooks.create(hook);
    work();
    happen("model.streamed");
    happen("run.ended");
    await expect.poll(() => posts.length).toBe(1);
    const [post] = posts;
    expect(JSON.parse(post?.body ?? "")).toEqual({
      specversion: "1.0",
      id: "run_a.3",
      source: "/v1/runs/run_a",
      type: "caisson.run.ended",
      subject: "run_a",
      time: "2030-01-01T00:00:00.000Z",
      sequence: "3",
      datacontenttype: "application/json",
      data: { n: 3 },
    });
    const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature } = post?.headers ?? {};
    expect(timestamp).toBe(String(time / 1000));
    const signed = createHmac("sha256", Buffer.from(secret.slice("whsec_".length), "base64")).update(`${id}.${timestamp}.${post?.body}`);
    expect(signature).toBe(`v1,${signed.digest("base64")}`);
    expect(post?.headers["content-type"]).toMatch(/^application\/cloudevents\+json/);
    expect(JSON.stringify(await webhooks.list())).not.toContain(secret);
    expect(statSync(join(stateDir, "webhooks.db")).mode & 0o777).toBe(0o600);
  });

  test("receive sandbox events with retries", async () => {
    await webhooks.create({ ...hook, events: ["sandbox.*"] });
    answer = () => ({ error: "no" });
    work();
    const event = { type: "sandbox.ended", version: 1, at: "2030-01-01T00:00:00.000Z", data: {} } as unknown as FedEvent["event"];
    feed.push({ sandbox: "sb_a", owner: "local", seq: 4, position: 1, event, damage: null } as FedEvent);
    for (const each of waiters.splice(0)) each();
    await expect.poll(states).toEqual([["retrying", 1]]);
    answer = () => ({ status: 200, retryAfterSeconds: null });
    time += 60_000;
    await webhooks.replay("chat", { delivery: (await webhooks.deliveries("chat"))[0]?.id });
    await expect.poll(async () => (await webhooks.deliveries("chat"))[0]).toMatchObject({ state: "delivered", run: null, sandbox: "sb_a" });
    const payloads = posts.map(({ body }) => JSON.parse(body) as object);
    expect(payloads).toEqual([payloads[0], payloads[0]]);
    expect(payloads[0]).toMatchObject({ id: "sb_a.4", source: "/v1/sandboxes/sb_a", subject: "sb_a", type: "caisson.sandbox.ended" });
  });

  test.each([
    { kind: "workflow", id: "wf_a", source: "/v1/workflows/wf_a" },
    { kind: "spec", id: "spec_a", source: "/v1/specs/spec_a" },
    { kind: "ship", id: "ship_a", source: "/v1/ships/ship_a" },
    { kind: "merge", id: "mrg_a", source: "/v1/merges/mrg_a" },
  ])("receive events of a $kind with retries", async ({ kind, id, source }) => {
    await webhooks.create({ ...hook, events: ["driven.ended"] });
    answer = () => ({ error: "no" });
    work();
    const event = { type: "driven.ended", version: 1, at: "2030-01-01T00:00:00.000Z", data: { finish: "completed" } };
    feed.push({ driven: { kind, id }, owner: "local", seq: 4, position: 1, event, damage: null } as unknown as FedEvent);
    for (const each of waiters.splice(0)) each();
    await expect.poll(states).toEqual([["retrying", 1]]);
    answer = () => ({ status: 200, retryAfterSeconds: null });
    time += 60_000;
    await webhooks.replay("chat", { delivery: (await webhooks.deliveries("chat"))[0]?.id });
    await expect.poll(async () => (await webhooks.deliveries("chat"))[0]).toMatchObject({ state: "delivered", driven: { kind, id } });
    const payloads = posts.map(({ body }) => JSON.parse(body) as object);
    expect(payloads).toEqual([payloads[0], payloads[0]]);
    expect(payloads[0]).toMatchObject({ id: `${id}.4`, source, subject: id, type: "caisson.driven.ended" });
  });

  test("are retried with the same id, and do not delay each other", async () => {
    await webhooks.create({ ...hook, events: ["*"] });
    await webhooks.create({ ...hook, name: "other" });
    answer = ({ headers }) => (headers["webhook-id"]?.includes("_1") ? { error: "no" } : { status: 200, retryAfterSeconds: null });
    work();
    happen("run.ended");
    happen("run.ended");
    await expect.poll(states).toEqual([
      ["delivered", 1],
      ["retrying", 1],
    ]);
    answer = () => ({ status: 200, retryAfterSeconds: null });
    const before = posts.length;
    time += 10_000;
    await webhooks.pause("other");
    await expect.poll(states).toEqual([
      ["delivered", 1],
      ["delivered", 2],
    ]);
    expect(posts[before]?.headers["webhook-id"]).toBe(posts.find(({ body }) => body.includes("run_a.1"))?.headers["webhook-id"]);
  });

  test("have dead deliveries after the last attempt, which can be replayed", async () => {
    await webhooks.create(hook);
    answer = () => ({ status: 500, retryAfterSeconds: null });
    work();
    happen("run.ended");
    for (let attempts = 1; attempts <= 8; attempts++) {
      await expect.poll(states).toEqual([["retrying", attempts]]);
      time += 48 * 3_600_000;
      await webhooks.resume("chat");
    }
    await expect.poll(states).toEqual([["dead", 9]]);
    expect(await webhooks.get("chat")).toMatchObject({ dead: 1, retrying: 0 });
    expect(await webhooks.deliveries("chat", { state: "dead" })).toMatchObject([{ status: 500, error: "it answered 500", nextAt: null }]);
    answer = () => ({ status: 200, retryAfterSeconds: null });
    expect(await webhooks.replay("chat")).toEqual({ replayed: 1 });
    await expect.poll(states).toEqual([["delivered", 2]]);
    await expect(webhooks.replay("chat", { delivery: "msg_whk_aaaaaaaaaaaa_99" })).rejects.toMatchObject({ code: "not_found" });
  });

  test("lose nothing while no station serves, and receive each event once", async () => {
    await webhooks.create(hook);
    work();
    happen("run.ended");
    await expect.poll(() => posts.length).toBe(1);
    await expect.poll(states).toHaveLength(1);
    await stop();
    happen("run.ended");
    await webhooks.close();
    webhooks = open();
    work();
    await expect.poll(() => posts.length).toBe(2);
    expect(bodies()).toEqual(["run_a.1", "run_a.2"]);
  });

  test("are paused after 410 Gone, and get the events afterwards", async () => {
    await webhooks.create(hook);
    answer = () => ({ status: 410, retryAfterSeconds: null });
    work();
    happen("run.ended");
    await expect.poll(async () => (await webhooks.get("chat")).paused).toMatch(/410 Gone/);
    happen("run.ended");
    answer = () => ({ status: 200, retryAfterSeconds: null });
    await webhooks.resume("chat");
    await expect.poll(() => bodies().filter((id) => id === "run_a.2")).toHaveLength(1);
  });

  test("can be tested, and are rejected if invalid", async () => {
    await webhooks.create(hook);
    expect(await webhooks.test("chat")).toMatchObject({ ok: true, status: 204 });
    expect(JSON.parse(posts[0]?.body ?? "")).toMatchObject({ type: "caisson.webhook.test" });
    await expect(webhooks.create(hook)).rejects.toMatchObject({ code: "exists" });
    for (const bad of [
      { ...hook, name: "b", url: "http://hook.test/" },
      { ...hook, name: "b", url: "https://user:pw@hook.test/" },
      { ...hook, name: "b", url: "ftp://hook.test/" },
      { ...hook, name: "b", events: ["run"] },
      { ...hook, name: "../b" },
    ])
      await expect(webhooks.create(bad), JSON.stringify(bad)).rejects.toMatchObject({ code: "invalid" });
    await webhooks.remove("chat");
    await expect(webhooks.get("chat")).rejects.toMatchObject({ code: "not_found" });
  });
});

test("migrates a database with machine-wide names and keeps its deliveries", async () => {
  const { id } = await webhooks.create(hook, { as: { owner: "ada", sees: "own" } });
  await webhooks.close();
  const path = join(stateDir, "webhooks.db");
  const old = new DatabaseSync(path);
  old.exec(`PRAGMA foreign_keys=OFF; CREATE TABLE before AS SELECT id, name, record, reached FROM webhooks; DROP TABLE webhooks;
    CREATE TABLE webhooks (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, record TEXT NOT NULL, reached INTEGER NOT NULL);
    INSERT INTO webhooks SELECT * FROM before; DROP TABLE before; PRAGMA user_version=0;`);
  const delivery = { state: "dead", run: "run_a", seq: 1, type: "run.ended", attempts: 9, at: "2030-01-01T00:00:00.000Z", position: 1 };
  old
    .prepare("INSERT INTO deliveries VALUES (?, 1, 'dead', NULL, ?)")
    .run(id, JSON.stringify({ ...delivery, nextAt: null, status: 500, error: null }));
  old.close();
  webhooks = open();
  expect(await webhooks.list()).toMatchObject([{ id, name: "chat", owner: "ada", dead: 1 }]);
  await expect(webhooks.create(hook, { as: { owner: "ada", sees: "own" } })).rejects.toMatchObject({ code: "exists" });
  expect((await webhooks.create(hook, { as: { owner: "bob", sees: "own" } })).owner).toBe("bob");
  await webhooks.remove(id);
  // Only its own deliveries are removed with it.
  expect(await webhooks.list()).toMatchObject([{ owner: "bob", dead: 0 }]);
});
