import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { duplexPair } from "node:stream";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createStationRelay, type StationRelay } from "./station-relay.ts";

let base: string;
let station: Server;
let relay: StationRelay;
const calls: { method: string; url: string; headers: IncomingMessage["headers"]; body: string }[] = [];

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "caisson-test-relay-"));
  calls.length = 0;
  station = createServer(async (from, to) => {
    calls.push({ method: from.method ?? "", url: from.url ?? "", headers: from.headers, body: await text(from) });
    to.writeHead(429, { "content-type": "application/json", "retry-after": "3", "x-private": "no" }).end('{"said":1}');
  });
  await new Promise<void>((resolve) => station.listen(join(base, "inside"), resolve));
  relay = createStationRelay({ sandbox: "sb_aaaaaaaaaaaa", socketPath: join(base, "inside") });
});
afterEach(async () => {
  await relay.close();
  await new Promise((resolve) => station.close(resolve));
  await rm(base, { recursive: true, force: true });
});

/** Sends a request as a program inside would. */
function ask(method: string, path: string, options: { headers?: Record<string, string>; body?: string } = {}) {
  const [inside, outside] = duplexPair();
  relay.handle({ stream: outside, destination: null });
  return new Promise<{ status: number; headers: IncomingMessage["headers"]; body: string }>((resolve, reject) => {
    const asking = request({ method, path, headers: options.headers ?? {}, createConnection: () => inside as never }, async (answer) =>
      resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: await text(answer) }),
    );
    asking.on("error", reject);
    asking.end(options.body);
  });
}

describe("the station relay", () => {
  test("passes on a call with its token and its sandbox, and nothing else", async () => {
    const headers = { authorization: "Bearer sbt_x", "caisson-sandbox": "sb_bbbbbbbbbbbb", "x-forwarded-for": "1.2.3.4", cookie: "a=b" };
    const answer = await ask("POST", "/v1/inside/events", { headers, body: '{"type":"x"}' });
    expect(calls).toMatchObject([{ method: "POST", url: "/v1/inside/events", body: '{"type":"x"}' }]);
    expect(calls[0]?.headers).toMatchObject({ authorization: "Bearer sbt_x", "caisson-sandbox": "sb_aaaaaaaaaaaa", host: "station" });
    expect(calls[0]?.headers).not.toHaveProperty("cookie");
    expect(calls[0]?.headers).not.toHaveProperty("x-forwarded-for");
    expect(answer).toMatchObject({ status: 429, body: '{"said":1}', headers: { "retry-after": "3" } });
    expect(answer.headers).not.toHaveProperty("x-private");
  });

  test.each([
    ["GET", "/v1/status"],
    ["POST", "/v1/sandboxes"],
    ["GET", "/v1/inside/events"],
    ["POST", "/v1/inside/events/../../status"],
    ["POST", "/v1/inside/events?x=1"],
    ["PUT", "/v1/inside/artifacts/../../tokens"],
    ["PUT", "/v1/inside/artifacts/%2e%2e"],
    ["POST", "http://station/v1/inside/events"],
    ["DELETE", "/v1/inside/artifacts/x"],
  ])("does not pass on %s %s", async (method, path) => {
    expect((await ask(method, path)).status).toBe(404);
    expect(calls).toEqual([]);
  });

  test("reports that no station is running", async () => {
    await new Promise((resolve) => station.close(resolve));
    await rm(join(base, "inside"), { force: true });
    expect(await ask("POST", "/v1/inside/heartbeat")).toMatchObject({
      status: 503,
      body: expect.stringContaining("no station is running"),
    });
    station = createServer();
    await new Promise<void>((resolve) => station.listen(join(base, "inside"), resolve));
  });
});
