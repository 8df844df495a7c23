import { Agent, type IncomingHttpHeaders, request } from "node:http";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { beforeEach, describe, expect, test } from "vitest";
import { useServer } from "../../../test/support/api-station.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { refuseBroken } from "./refuse-request.ts";
import { requestPace } from "./request-scheduler.ts";

interface RequestOptions {
  url: string;
  token?: string;
  agent?: Agent;
  method?: string;
  body?: Buffer;
}

/** Rejects if the connection is reset. */
function ask(
  path: string,
  { url, token, agent, method = "GET", body }: RequestOptions,
): Promise<{ status: number; headers: IncomingHttpHeaders }> {
  return new Promise((resolve, reject) => {
    const headers = {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { "content-type": "application/json", "content-length": body.length }),
    };
    const sent = request(`${url}${path}`, { method, headers, ...(agent ? { agent } : { agent: false }) }, (answer) => {
      answer.resume().once("end", () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers }));
      answer.once("error", reject);
    });
    sent.once("error", reject);
    sent.end(body);
  });
}

const lateLoop = { recentMs: () => 1_000, [Symbol.dispose]: () => {} };

describe("a station with hanging lists and a slow event loop", () => {
  let hanging = Promise.withResolvers<never>();
  const { server, token, endedRun } = useServer({
    // A hanging request keeps its place for a while, so that a busy machine refuses as many.
    intake: { loop: lateLoop, pace: { ...requestPace, freshMs: 1_000 } },
    instead: (real) => ({ ...real, runs: { ...real.runs, list: () => hanging.promise } }),
  });
  beforeEach(() => {
    hanging = Promise.withResolvers();
    hanging.promise.catch(() => {});
  });
  const release = (agent: Agent) => {
    agent.destroy();
    hanging.reject(new CaissonError("cancelled", "the test is over"));
  };

  /** Sends more never-answered requests of one owner than may wait. Returns the refusals. */
  async function flood(count: number): Promise<{ agent: Agent; refused: { status: number; headers: IncomingHttpHeaders }[] }> {
    const ada = await token("run", { owner: "ada" });
    const { url } = server().status;
    await ask("/v1/status", { url, token: ada });
    const agent = new Agent({ keepAlive: true, maxSockets: count });
    const refused: { status: number; headers: IncomingHttpHeaders }[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    for (let at = 0; at < count; at++) {
      ask("/v1/runs", { url, token: ada, agent }).then(
        (answer) => {
          refused.push(answer);
          if (refused.length === count / 2) resolve();
        },
        () => {},
      );
    }
    await promise;
    return { agent, refused };
  }

  test("refuses a flood with 429 or 503 and Retry-After, and serves other owners", async () => {
    const { agent, refused } = await flood(200);
    const { url } = server().status;
    const bob = await token("run", { owner: "bob" });
    expect(refused.every(({ status, headers }) => [429, 503].includes(status) && Number(headers["retry-after"]) >= 1)).toBe(true);
    expect((await ask("/healthz", { url })).status).toBe(200);
    expect((await ask("/v1/status", { url, token: bob })).status).toBe(200);
    expect((await ask("/v1/sandboxes", { url, token: bob })).status).toBe(200);
    const run = await endedRun({ owner: "bob" });
    expect((await ask(`/v1/runs/${run}/stop`, { url, token: bob, method: "POST" })).headers["retry-after"]).toBeUndefined();
    release(agent);
  });

  test("reports the number of refusals in its status and metrics", async () => {
    const { agent, refused } = await flood(200);
    const { load } = server().status;
    expect(load?.refused.list).toBeGreaterThanOrEqual(refused.length);
    expect(load?.loopDelayMs).toBe(1_000);
    release(agent);
  });

  test("refuses a large body without a reset", async () => {
    const { agent } = await flood(200);
    const { url } = server().status;
    const eve = "tok_nobody_x";
    const body = Buffer.alloc(900_000, " ");
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask("/v1/runs", { url, token: eve, method: "POST", body })));
    expect(answers.some(({ headers }) => headers["retry-after"] !== undefined)).toBe(true);
    release(agent);
  });
});

describe("a station with a client that never pauses", () => {
  const { server, token } = useServer();

  test("answers a new connection soon although another client keeps 200 busy", async () => {
    const { url } = server().status;
    const [ada, bob] = [await token("run", { owner: "ada" }), await token("run", { owner: "bob" })];
    const agent = new Agent({ keepAlive: true, maxSockets: 200 });
    let served = 0;
    let isOver = false;
    const loops = Array.from({ length: 200 }, async () => {
      while (!isOver) if ((await ask("/v1/runs", { url, token: ada, agent })).status === 200) served += 1;
    });
    for (let at = 0; at < 3; at++) expect((await ask("/v1/runs", { url, token: bob })).status).toBe(200);
    // Without a limit per turn, all 200 would be served in each turn until the new one is accepted.
    expect(served).toBeLessThan(2_000);
    isOver = true;
    await Promise.all(loops);
    agent.destroy();
  });
});

test("answers a slow header with 408 and Retry-After", async () => {
  const socket = new PassThrough();
  refuseBroken(Object.assign(new Error("slow"), { code: "ERR_HTTP_REQUEST_TIMEOUT" }), socket);
  const answer = await text(socket);
  expect(answer).toMatch(/^HTTP\/1\.1 408 .*\r\n/);
  expect(answer).toContain("retry-after: 1\r\n");
});
