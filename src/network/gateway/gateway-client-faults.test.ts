import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { openGatewayRig } from "../../../test/support/gateway-rig.ts";
import { anthropicMessage, chatEvents, sendJson, sse, type UpstreamReply } from "../../../test/support/model-upstream.ts";
import { begin, CHAT, claude, gpt, MESSAGES, nothing } from "./testing-gateway.ts";

describe("client faults", () => {
  test("ends the upstream call when the client hangs up, and meters it", async () => {
    const events = chatEvents("A word, and then nothing more ever.", null).slice(0, 4);
    await using rig = await openGatewayRig({ "/v1/chat/completions": begin(events, nothing) });
    const controller = new AbortController();
    const answer = await rig.post(CHAT, gpt({ stream: true }), { signal: controller.signal });
    await answer.body?.getReader().read();
    controller.abort();
    await rig.upstream.calls[0]?.aborted;
    await rig.eventsAre(1);
    const { data } = rig.events[0] ?? {};
    expect(data).toMatchObject({
      status: 200,
      answered: "A word, and then nothi".slice(0, data?.answered.length),
      error: expect.stringContaining("hung up"),
    });
    expect(data?.usage.outputTokens).toBeGreaterThan(0);
  });

  test("meters a call whose client hangs up before the answer", async () => {
    await using rig = await openGatewayRig({ "/v1/messages": nothing });
    const controller = new AbortController();
    const call = rig.post(MESSAGES, claude(), { signal: controller.signal });
    call.catch(() => undefined);
    while (rig.upstream.calls.length === 0) await new Promise((resolve) => setImmediate(resolve));
    controller.abort();
    await rig.eventsAre(1);
    expect(rig.events[0]?.data).toMatchObject({ status: 499, error: expect.stringContaining("estimated") });
    expect(rig.events[0]?.data.usage.inputTokens).toBeGreaterThan(0);
  });

  test.each([
    ["text that is not JSON", "{", 400],
    ["a list", "[]", 400],
    ["an object without a model", "{}", 400],
    ["a model that is not a name", '{"model":7}', 400],
    ["bytes that are not text", new Uint8Array([0x7b, 0xff, 0x7d]), 400],
    ["an oversized body", JSON.stringify(claude({ more: "x".repeat(4_000_000) })), 413],
    ["a background request", JSON.stringify({ model: "m", background: true }), 400],
  ])("refuses and records %s, and keeps the connection", async (_name, body, status) => {
    await using rig = await openGatewayRig(
      { "/v1/messages": sendJson(200, anthropicMessage("ok", { input: 1, output: 1 })) },
      { limits: { bodyBytesMax: 1000 } },
    );
    const answer = await fetch(`${rig.url}${MESSAGES}`, { method: "POST", body });
    expect([answer.status, await answer.json()]).toMatchObject([status, { type: "error" }]);
    expect(rig.upstream.calls).toEqual([]);
    expect((await rig.post(MESSAGES, claude())).status).toBe(200);
    await rig.eventsAre(2);
    expect(rig.events[0]?.data).toMatchObject({ status, costUsd: 0, error: expect.any(String) });
  });

  test("discards the rest of an oversized body and serves the next request", async () => {
    await using rig = await openGatewayRig({}, { limits: { bodyBytesMax: 1000 } });
    const socket = connect(Number(new URL(rig.url).port), "127.0.0.1");
    let output = "";
    socket.on("data", (data) => {
      output += data;
    });
    const long = "x".repeat(4_000_000);
    socket.write(`POST ${MESSAGES} HTTP/1.1\r\nhost: x\r\ncontent-length: ${long.length}\r\n\r\n${long}`);
    socket.end("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    await once(socket, "close");
    expect(output).toMatch(/^HTTP\/1.1 413 .*HTTP\/1.1 200 .*Caisson's model gateway/s);
  });

  test("refuses a compressed body, and bytes that are not HTTP", async () => {
    await using rig = await openGatewayRig({});
    expect((await rig.post(MESSAGES, claude(), { headers: { "content-encoding": "zstd" } })).status).toBe(415);
    const socket = connect(Number(new URL(rig.url).port), "127.0.0.1");
    socket.end("\x16\x03\x01 not http\r\n\r\n");
    const pieces: Buffer[] = [];
    for await (const piece of socket) pieces.push(piece as Buffer);
    expect(Buffer.concat(pieces).toString()).toMatch(/^HTTP\/1.1 400 /);
  });

  test("drops clients that send slowly or nothing", async () => {
    await using rig = await openGatewayRig({}, { limits: { requestMs: 50, connectionIdleMs: 50 } });
    const port = Number(new URL(rig.url).port);
    const idle = connect(port, "127.0.0.1");
    const slow = connect(port, "127.0.0.1");
    slow.write(`POST ${MESSAGES} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{`);
    const closed = [idle, slow].map(
      (socket) =>
        new Promise((resolve) =>
          socket
            .on("error", () => undefined)
            .once("close", resolve)
            .resume(),
        ),
    );
    await Promise.all(closed);
    expect(rig.events[0]?.data.error).toContain("too long to arrive");
  });

  test("reads from the upstream only as fast as the client does", async () => {
    let written = 0;
    const chunk = sse({ type: "ping", fill: "x".repeat(64 * 1024) });
    const flood: UpstreamReply = async (response, call) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      let isAborted = false;
      void call.aborted.then(() => {
        isAborted = true;
      });
      while (!isAborted) {
        written += chunk.length;
        if (!response.write(chunk)) await Promise.race([new Promise((resolve) => response.once("drain", resolve)), call.aborted]);
      }
    };
    await using rig = await openGatewayRig({ "/v1/messages": flood }, { limits: { stallMs: 500 } });
    const socket = connect(Number(new URL(rig.url).port), "127.0.0.1");
    const body = JSON.stringify(claude({ stream: true }));
    socket.write(`POST ${MESSAGES} HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    // The client does not read, so the gateway gives up the call when no data moves.
    await rig.eventsAre(1);
    socket.destroy();
    expect(rig.events[0]?.data.error).toContain("no data moved");
    expect(written).toBeLessThan(64 * 2 ** 20);
  });

  test("refuses connections above the limit", async () => {
    await using rig = await openGatewayRig({}, { limits: { connectionsMax: 2 } });
    const port = Number(new URL(rig.url).port);
    const open = [1, 2].map(() => connect(port, "127.0.0.1"));
    await Promise.all(open.map((socket) => new Promise((resolve) => socket.once("connect", resolve))));
    await expect(fetch(rig.url)).rejects.toThrow();
    for (const socket of open) socket.destroy();
  });
});
