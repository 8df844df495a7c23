import { createHash, randomBytes } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { request } from "node:http";
import { connect as connectSocket } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { ownMs } from "../../test/support/own-time.ts";

const { server, start, token, ask, post, base, endedRun, station, defects } = useServer();

async function newSandbox(): Promise<string> {
  return ((await (await post("/v1/sandboxes")).json()) as { id: string }).id;
}

/** Sends raw bytes to the station's port. Resolves with everything received until the connection is closed. */
function raw(text: string): Promise<string> {
  const { port } = new URL(server().status.url);
  return new Promise((resolve, reject) => {
    let answer = "";
    const socket = connectSocket(Number(port), "127.0.0.1", () => socket.write(text));
    socket.setEncoding("utf8").on("data", (data) => {
      answer += data;
    });
    socket.on("close", () => resolve(answer)).on("error", reject);
  });
}

describe("the server", () => {
  test("refuses a second server on its state folder, and reports its process id", async () => {
    await expect(start()).rejects.toMatchObject({ code: "conflict", details: { pid: process.pid } });
    expect((await ask("/v1/status")).status).toBe(200);
    await server().close();
    await using again = await start();
    expect(again.status.pid).toBe(process.pid);
    await again.close();
    expect(existsSync(again.socketPath)).toBe(false);
  });

  test("replaces one that was killed", async () => {
    const { socketPath } = server();
    await server().close();
    await writeFile(socketPath, "");
    await writeFile(join(base(), "state", "station", "station.json"), '{"pid":1}');
    await using again = await start();
    expect(statSync(again.socketPath).mode & 0o777).toBe(0o600);
    expect(statSync(join(base(), "state", "station")).mode & 0o777).toBe(0o700);
  });

  test("rejects foreign host names and other origins", async () => {
    const as = await token("admin");
    const answer = await raw(`GET /v1/status HTTP/1.1\r\nhost: evil.test\r\nauthorization: Bearer ${as}\r\nconnection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 403 /);
    const foreign = await ask("/v1/status", { as, headers: { origin: "http://evil.test" } });
    expect(foreign.status).toBe(403);
    expect([...foreign.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    expect((await ask("/v1/status", { as, method: "OPTIONS" })).status).toBe(404);
    expect((await ask("/v1/status", { as, method: "HEAD" })).status).toBe(404);
  });

  test("limits bodies, and rejects anything but JSON", async () => {
    const as = await token("run");
    const huge = await post("/v1/sandboxes", { x: "x".repeat(2 * 1024 * 1024) }, { as });
    expect([huge.status, (await huge.json()) as object]).toMatchObject([413, { code: "too_large" }]);
    const headers = { "content-type": "application/json" };
    for (const body of ["{", "null", "[1", "\0", ""]) {
      expect((await ask("/v1/runs", { as, method: "POST", headers, body })).status, body).toBe(400);
    }
    expect((await ask("/v1/sandboxes", { as, method: "POST", headers: { "content-type": "text/plain" }, body: "{}" })).status).toBe(400);
    expect(defects).toEqual([]);
  });

  test("leaves a file unchanged if its upload breaks off", async () => {
    const as = await token("run");
    const sandbox = await newSandbox();
    const path = `/v1/sandboxes/${sandbox}/files/content?path=/workspace/a`;
    await ask(path, { as, method: "PUT", body: "as it was" });
    const { port } = new URL(server().status.url);
    const cut = request({ port, path, method: "PUT", headers: { authorization: `Bearer ${as}`, "content-length": "1000" } });
    cut.on("error", () => {});
    cut.write("half of it");
    await expect.poll(() => server().status.requests).toBe(1);
    cut.destroy();
    await expect.poll(() => server().status.requests).toBe(0);
    expect(await (await ask(path)).text()).toBe("as it was");
    expect((await (await ask(`/v1/sandboxes/${sandbox}/files?path=/workspace`)).json()) as object).toMatchObject({
      entries: [{ name: "a" }],
    });
    expect(defects).toEqual([]);
  });

  test("streams files in and out, whole and in parts", async () => {
    const as = await token("run");
    const sandbox = await newSandbox();
    const bytes = randomBytes(3 * 1024 * 1024 + 17);
    const path = `/v1/sandboxes/${sandbox}/files/content?path=/workspace/deep/file&parents=true`;
    expect(await (await ask(path, { as, method: "PUT", body: bytes })).json()).toEqual({ bytes: bytes.length });
    const back = await (await ask(path.replace("&parents=true", ""), { as })).arrayBuffer();
    expect(createHash("sha256").update(Buffer.from(back)).digest("hex")).toBe(createHash("sha256").update(bytes).digest("hex"));
    const part = await (await ask(`${path.replace("&parents=true", "")}&offset=10&length=5`)).arrayBuffer();
    expect(Buffer.from(part)).toEqual(bytes.subarray(10, 15));
    expect((await ask(`/v1/sandboxes/${sandbox}/files/content?path=/nowhere`)).status).toBe(404);
  });

  test("returns a command's output at once or as events, and ends it on disconnect", async () => {
    const sandbox = await newSandbox();
    const exec = `/v1/sandboxes/${sandbox}/exec`;
    expect(await (await post(exec, { argv: ["echo", "hello"] })).json()).toMatchObject({
      ended: { kind: "exited", exitCode: 0 },
      stdout: { encoding: "utf8", text: "hello\n" },
      stderr: { text: "" },
    });
    const events = await (await post(exec, { argv: ["cat"], input: "typed" }, { headers: { accept: "text/event-stream" } })).text();
    expect(events).toContain('"stream":"stdout","offset":0,"encoding":"utf8","text":"typed"');
    expect(events).toMatch(/event: ended\ndata: .*"exitCode":0.*\n\nevent: end\n/);
    const controller = new AbortController();
    const waiting = post(exec, { argv: ["sleep", "1000"] }, { signal: controller.signal, as: await token("run") });
    await expect.poll(() => server().status.requests).toBe(1);
    controller.abort();
    await expect(waiting).rejects.toThrow();
    await expect.poll(() => server().status.requests).toBe(0);
    const running = async () => {
      await using held = await station().sandboxes.hold(sandbox);
      return (await held.processes()).filter(({ state }) => state === "running").length;
    };
    await expect.poll(running).toBe(0);
    expect((await post(exec, { argv: ["no-such-program"] })).status).toBe(404);
  });

  test("returns the events of a run as pages or as a resumable stream", async () => {
    const as = await token("read");
    const run = await endedRun();
    const page = (await (await ask(`/v1/runs/${run}/events?limit=2`, { as })).json()) as { events: { seq: number }[]; next: number };
    expect(page).toMatchObject({ events: [{ seq: 1, type: "run.created" }, { seq: 2 }], next: 3 });
    const stream = { as, headers: { accept: "text/event-stream" } };
    const whole = await (await ask(`/v1/runs/${run}/events`, stream)).text();
    const ids = [...whole.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
    expect(ids).toEqual(ids.map((_, at) => at + 1));
    expect(whole).toMatch(/event: run\.ended\n.*\n\nevent: end\ndata: \{\}\n\n$/);
    const rest = await (await ask(`/v1/runs/${run}/events`, { ...stream, headers: { ...stream.headers, "last-event-id": "3" } })).text();
    expect(rest).toContain("\nid: 4\n");
    expect(rest).not.toContain("\nid: 3\n");
    expect((await ask("/v1/runs/run_aaaaaaaaaaaa/events", stream)).status).toBe(404);
    expect(await (await ask("/v1/runs?limit=10&state=ended", { as })).json()).toMatchObject({ runs: [{ run }], total: 1, next: null });
  });

  test("ends a stream within a second when its token is revoked", async () => {
    const as = await token("read");
    const response = await ask("/v1/events", { as });
    const ended = response.text();
    const [{ id } = { id: "" }] = await station().tokens.list();
    await station().tokens.revoke(id);
    expect(await ownMs(ended)).toBeLessThan(1500);
    expect(await ended).not.toContain("event: end");
    expect((await ask("/v1/events", { as })).status).toBe(401);
  });

  test("ends gracefully: streams at once, requests in progress when they finish", async () => {
    const as = await token("admin");
    const sandbox = await newSandbox();
    const stream = ask("/v1/events", { as }).then((response) => response.text());
    const command = post(`/v1/sandboxes/${sandbox}/exec`, { argv: ["sleep", "0.5"] }, { as }).then((response) => response.json());
    await expect.poll(() => server().status.requests).toBe(2);
    expect((await post("/v1/shutdown", {}, { as })).status).toBe(202);
    await server().askedToEnd;
    const closing = server().close();
    await stream;
    expect(await command).toMatchObject({ ended: { kind: "exited", exitCode: 0 } });
    await closing;
    await expect(ask("/v1/status", { as })).rejects.toThrow();
  });

  test("disconnects a client with endless headers, and serves others meanwhile", async () => {
    const { port } = new URL(server().status.url);
    const slow = connectSocket(Number(port), "127.0.0.1", () => slow.write("GET /v1/status HTTP/1.1\r\n"));
    const closed = new Promise((resolve) => slow.on("close", resolve));
    slow.on("error", () => {}).resume();
    const drip = setInterval(() => slow.write("x-slow: 1\r\n"), 500);
    try {
      expect((await ask("/v1/status")).status).toBe(200);
      expect(await Promise.race([closed.then(() => "closed"), delay(30_000, "open")])).toBe("closed");
    } finally {
      clearInterval(drip);
      slow.destroy();
    }
  });
});
