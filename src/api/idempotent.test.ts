import { createServer, request as httpRequest } from "node:http";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { connect } from "../client/connect.ts";
import { answerLimits, openAnswerStore } from "./answer-store.ts";

const { server, start, token, ask, post, station, base, defects } = useServer();
const answersPath = () => join(base(), "state", "station", "answers.db");

async function sandboxesNow(): Promise<number> {
  return (await station().sandboxes.list()).sandboxes.length;
}

describe("a request with an Idempotency-Key", () => {
  test("is executed once, even if the station restarts in between", async () => {
    const as = await token("run");
    const headers = { "idempotency-key": "one" };
    const first = await post("/v1/sandboxes", { spec: { labels: { a: "b" } } }, { as, headers });
    const sandbox = await first.json();
    expect([first.status, first.headers.get("idempotency-replayed")]).toEqual([201, null]);
    const second = await post("/v1/sandboxes", { spec: { labels: { a: "b" } } }, { as, headers });
    expect([second.status, second.headers.get("idempotency-replayed"), await second.json()]).toEqual([201, "true", sandbox]);
    expect(await sandboxesNow()).toBe(1);
    await server().close();
    await using next = await start();
    const third = await fetch(`${next.status.url}/v1/sandboxes`, {
      method: "POST",
      headers: { ...headers, authorization: `Bearer ${as}`, "content-type": "application/json" },
      body: JSON.stringify({ spec: { labels: { a: "b" } } }),
    });
    expect([third.headers.get("idempotency-replayed"), await third.json()]).toEqual(["true", sandbox]);
    expect(await sandboxesNow()).toBe(1);
  });

  test("identifies one request of one caller", async () => {
    const [as, other] = [await token("run"), await token("run")];
    const headers = { "idempotency-key": "one" };
    await post("/v1/sandboxes", {}, { as, headers });
    const another = await post("/v1/sandboxes", { spec: { labels: { x: "y" } } }, { as, headers });
    expect([another.status, await another.json()]).toMatchObject([409, { code: "conflict", retryable: false }]);
    expect((await post("/v1/sandboxes/none/pause", {}, { as, headers })).status).toBe(409);
    expect((await post("/v1/sandboxes", {}, { as: other, headers })).headers.get("idempotency-replayed")).toBeNull();
    expect(await sandboxesNow()).toBe(2);
  });

  test("is refused while the first one is in progress", async () => {
    const as = await token("run");
    const { id } = (await (await post("/v1/sandboxes", {}, { as })).json()) as { id: string };
    const exec = (key: string) => post(`/v1/sandboxes/${id}/exec`, { argv: ["sleep", "0.5"] }, { as, headers: { "idempotency-key": key } });
    const first = exec("slow");
    await expect.poll(() => server().status.requests).toBe(1);
    const second = await exec("slow");
    expect([second.status, second.headers.get("retry-after"), await second.json()]).toMatchObject([
      429,
      "1",
      { code: "busy", retryable: true },
    ]);
    const answer = await (await first).json();
    expect(await (await exec("slow")).json()).toEqual(answer);
  });

  test("is not repeated if its outcome is unknown", async () => {
    const as = await token("run");
    const headers = { "idempotency-key": "cut" };
    await post("/v1/sandboxes", {}, { as, headers });
    await server().close();
    const database = new DatabaseSync(answersPath());
    // The state that a station killed during the request leaves behind.
    database.exec("UPDATE answers SET status = NULL, body = NULL, whole = 0");
    database.close();
    await using next = await start();
    const again = await fetch(`${next.status.url}/v1/sandboxes`, {
      method: "POST",
      headers: { ...headers, authorization: `Bearer ${as}`, "content-type": "application/json" },
      body: "{}",
    });
    expect([again.status, await again.json()]).toMatchObject([409, { code: "conflict", details: { interrupted: true } }]);
    expect(await sandboxesNow()).toBe(1);
  });

  test("repeats a permanent failure", async () => {
    const as = await token("run");
    const headers = { "idempotency-key": "gone" };
    for (let n = 0; n < 2; n++) expect((await post("/v1/runs/missing/stop", {}, { as, headers })).status).toBe(404);
    const bad = await post("/v1/sandboxes", { nonsense: 1 }, { as, headers: { "idempotency-key": "bad" } });
    expect(bad.status).toBe(400);
    // A request that was rejected before it started does not use up the key.
    expect((await post("/v1/sandboxes", {}, { as, headers: { "idempotency-key": "bad" } })).status).toBe(201);
  });

  test("does not repeat or store secrets that are shown once", async () => {
    const headers = { "idempotency-key": "token" };
    const newToken = (await (await post("/v1/tokens", { name: "new" }, { headers })).json()) as { token: string };
    const again = await post("/v1/tokens", { name: "new" }, { headers });
    expect([again.status, await again.json()]).toMatchObject([409, { details: { done: true } }]);
    await server().close();
    const database = new DatabaseSync(answersPath());
    expect(JSON.stringify(database.prepare("SELECT * FROM answers").all())).not.toContain(newToken.token);
    database.close();
  });

  test("is rejected if the answer is a stream or the key is malformed", async () => {
    const { id } = (await (await post("/v1/sandboxes")).json()) as { id: string };
    const headers = { "idempotency-key": "x", accept: "text/event-stream" };
    expect((await post(`/v1/sandboxes/${id}/exec`, { argv: ["true"] }, { headers })).status).toBe(400);
    for (const key of ["", "a b", "x".repeat(256)]) {
      const status = (await post("/v1/sandboxes", {}, { headers: { "idempotency-key": key } })).status;
      expect(status, key).toBe(400);
    }
    expect((await ask("/v1/sandboxes", { headers: { "idempotency-key": "a b" } })).status).toBe(200);
    expect(defects).toEqual([]);
  });

  test("is rejected for routes that answer with bytes, as the document specifies", async () => {
    const refused = await post("/v1/machine/backup", {}, { headers: { "idempotency-key": "x" } });
    expect([refused.status, await refused.json()]).toMatchObject([400, { code: "invalid", hint: "Omit the key." }]);
    const { paths } = (await (await ask("/v1/openapi.json")).json()) as { paths: Record<string, { post?: { parameters?: unknown } }> };
    const key = expect.objectContaining({ name: "Idempotency-Key" });
    expect(paths["/v1/sandboxes"]?.post?.parameters).toContainEqual(key);
    expect(paths["/v1/machine/backup"]?.post?.parameters ?? []).not.toContainEqual(key);
    expect(defects).toEqual([]);
  });

  test("compares the bytes of a binary body", async () => {
    const { id } = (await (await post("/v1/sandboxes")).json()) as { id: string };
    const { ref } = (await (await post(`/v1/sandboxes/${id}/processes`, { argv: ["cat"], stdin: "pipe" })).json()) as { ref: string };
    const input = (text: string) =>
      ask(`/v1/sandboxes/${id}/processes/${ref}/input`, { method: "POST", headers: { "idempotency-key": "i" }, body: text });
    expect((await input("typed")).status).toBe(204);
    expect((await input("typed")).headers.get("idempotency-replayed")).toBe("true");
    expect((await input("other")).status).toBe(409);
    await post(`/v1/sandboxes/${id}/processes/${ref}/close-input`);
    await expect
      .poll(async () => ((await (await ask(`/v1/sandboxes/${id}/processes/${ref}/output`)).json()) as { ended: unknown }).ended)
      .not.toBeNull();
    expect(await (await ask(`/v1/sandboxes/${id}/processes/${ref}/output`)).json()).toMatchObject({ stdout: { text: "typed" } });
  });
});

test("stores answers for a day, up to a limit in number and size", () => {
  let now = 0;
  using answers = openAnswerStore({ path: join(base(), "answers.db"), now: () => now });
  const callWithKey = (key: string) => ({ caller: "c", key, digest: "d" });
  const keep = (key: string, body: string) => {
    const call = answers.begin(callWithKey(key));
    if (call.kind === "first") call.keep({ status: 200, body, isWhole: true });
    return call.kind;
  };
  expect(keep("long", "x".repeat(answerLimits.bodyCharactersMax + 1))).toBe("first");
  expect(answers.begin(callWithKey("long"))).toMatchObject({ answer: { isWhole: false, body: null } });
  expect(keep("old", "{}")).toBe("first");
  now = answerLimits.keptMs - 1;
  expect(keep("old", "{}")).toBe("again");
  now += 1;
  expect(keep("old", "{}")).toBe("first");
});

test("the client retries over broken connections without repeating the effect", async () => {
  let broken = 0;
  const proxy = createServer((incoming, outgoing) => {
    const onward = httpRequest(
      `${server().status.url}${incoming.url}`,
      { method: incoming.method ?? "GET", headers: { ...incoming.headers, host: new URL(server().status.url).host } },
      (answer) => {
        // The first two answers are lost on the way.
        if (broken < 2) {
          broken += 1;
          incoming.socket.destroy();
          return;
        }
        outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(outgoing);
      },
    );
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port } = proxy.address() as { port: number };
  try {
    const client = connect({ url: `http://127.0.0.1:${port}`, token: await token("run") });
    const { id } = await client.sandboxes.create({});
    expect([broken, await sandboxesNow()]).toEqual([2, 1]);
    expect((await client.sandboxes.list()).sandboxes.map((each) => each.id)).toEqual([id]);
  } finally {
    proxy.closeAllConnections();
    proxy.close();
  }
});
