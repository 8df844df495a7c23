import { connect as connectSocket, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { routes } from "../verbs/routes.ts";
import { readBody } from "./read-call.ts";

const { server, token, ask, post, defects } = useServer();

/** Sends raw bytes. Resolves with everything received until the connection is closed. */
function raw(text: string, after: (socket: Socket) => void = () => {}): Promise<string> {
  const { port } = new URL(server().status.url);
  return new Promise((resolve) => {
    let answer = "";
    const socket = connectSocket(Number(port), "127.0.0.1", () => {
      socket.write(text);
      after(socket);
    });
    socket.setEncoding("utf8").on("data", (data) => {
      answer += data;
    });
    socket.on("error", () => {}).on("close", () => resolve(answer));
  });
}

const head = (as: string, line: string, ...more: string[]) =>
  [line, "host: 127.0.0.1", `authorization: Bearer ${as}`, "connection: close", ...more, "", ""].join("\r\n");

describe("an oversized request", () => {
  test("is refused for a long path, long headers or a long query", async () => {
    const as = await token("run");
    expect(await raw(head(as, `GET /v1/sandboxes/${"a".repeat(20_000)} HTTP/1.1`))).toMatch(/^HTTP\/1\.1 (414|431) /);
    expect(await raw(head(as, "GET /v1/status HTTP/1.1", `x-long: ${"a".repeat(20_000)}`))).toMatch(/^HTTP\/1\.1 431 /);
    const many = Array.from({ length: 3000 }, (_, n) => `x-${n}: 1`);
    expect(await raw(head(as, "GET /v1/status HTTP/1.1", ...many))).toMatch(/^HTTP\/1\.1 431 /);
    expect((await ask(`/v1/runs?cursor=${"a".repeat(10_000)}`, { as })).status).toBeGreaterThanOrEqual(400);
    expect((await ask("/v1/status", { as })).status).toBe(200);
    expect(defects).toEqual([]);
  });

  test("is refused by its content length, before its body is read", async () => {
    const as = await token("run");
    const answer = await raw(head(as, "POST /v1/sandboxes HTTP/1.1", "content-type: application/json", "content-length: 99999999"));
    expect(answer).toMatch(/^HTTP\/1\.1 413 [\s\S]*"bytesMax":1048576/);
  });

  test("is refused for deep nesting, not for brackets within strings", async () => {
    const as = await token("run");
    const headers = { "content-type": "application/json" };
    for (const body of ["[".repeat(500_000), `${'{"a":'.repeat(100)}1${"}".repeat(100)}`]) {
      const response = await ask("/v1/runs", { as, method: "POST", headers, body });
      expect([response.status, await response.json()]).toMatchObject([400, { detail: expect.stringContaining("nested") }]);
    }
    const { id } = (await (await post("/v1/sandboxes", {}, { as })).json()) as { id: string };
    const text = '[{"\\'.repeat(100);
    expect(await (await post(`/v1/sandboxes/${id}/exec`, { argv: ["echo", text] }, { as })).json()).toMatchObject({
      stdout: { text: `${text}\n` },
    });
  });
});

describe("a body that contradicts its headers", () => {
  test("is not read as a second request if it is too long", async () => {
    const as = await token("run");
    const answer = await raw(`${head(as, "POST /v1/sandboxes/none/pause HTTP/1.1", "content-length: 2")}{}GET /v1/status HTTP/1.1\r\n\r\n`);
    // Refused as a whole, or answered once.
    expect((answer.match(/HTTP\/1\.1 /g) ?? []).length).toBeLessThanOrEqual(1);
    expect(answer).not.toMatch(/^HTTP\/1\.1 200 /m);
    // The failure is audited even if no client receives it.
    const failed = async () => (await (await ask("/v1/audit?action=sandboxes.pause&outcome=failed")).json()) as { entries: unknown[] };
    await expect.poll(async () => (await failed()).entries.length).toBe(1);
  });

  test("has no effect if the connection ends before it is complete", async () => {
    const as = await token("run");
    await raw(head(as, "POST /v1/sandboxes HTTP/1.1", "content-type: application/json", "content-length: 100"), (socket) =>
      socket.end("{}"),
    );
    await expect.poll(() => server().status.requests).toBe(0);
    expect(((await (await ask("/v1/sandboxes", { as })).json()) as { sandboxes: unknown[] }).sandboxes).toEqual([]);
    expect(defects).toEqual([]);
  });

  test("is refused if it has two lengths", async () => {
    const as = await token("run");
    const both = head(as, "POST /v1/sandboxes HTTP/1.1", "content-length: 2", "transfer-encoding: chunked");
    expect(await raw(`${both}2\r\n{}\r\n0\r\n\r\n`)).toMatch(/^HTTP\/1\.1 400 /);
    expect(await raw(head(as, "POST /v1/sandboxes HTTP/1.1", "content-length: 2", "content-length: 3"))).toMatch(/^HTTP\/1\.1 400 /);
  });

  test("times out if it arrives one byte at a time", async () => {
    const drip = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          await new Promise((resolve) => setTimeout(resolve, 20));
          controller.enqueue(Buffer.from(" "));
        },
      },
      { highWaterMark: 0 },
    );
    const body = { headers: new Headers(), chunks: drip };
    await expect(readBody(routes["runs.start"], body, { bodyMs: 200 })).rejects.toMatchObject({ code: "timeout" });
  });
});

test.each(["..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "a%2fb", "%00", "a%0ab", "~root", "%ff"])(
  "rejects an id that is a path: %s",
  async (id) => {
    const as = await token("admin");
    for (const path of [
      `/v1/sandboxes/${id}/stats`,
      `/v1/runs/${id}/wait`,
      `/v1/sessions/${id}/diff`,
      `/v1/sandboxes/x/processes/${id}/output`,
    ]) {
      const answer = await raw(head(as, `GET ${path} HTTP/1.1`));
      expect(answer, path).toMatch(/^HTTP\/1\.1 40[04] /);
    }
    for (const path of [`/v1/secrets/${id}`, `/v1/images/${id}`, `/v1/snapshots/${id}`, `/v1/tokens/${id}`]) {
      expect(await raw(head(as, `DELETE ${path} HTTP/1.1`)), path).toMatch(/^HTTP\/1\.1 40[04] /);
    }
    expect(defects).toEqual([]);
  },
);
