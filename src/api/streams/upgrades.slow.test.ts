import { connect as connectSocket } from "node:net";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { useServer } from "../../../test/support/api-station.ts";
import { ownMs } from "../../../test/support/own-time.ts";
import { tries } from "../../../test/support/thorough.ts";
import { type StreamName, streamPaths } from "../../contract/api/stream-paths.ts";
import { streamRoutes } from "../../contract/api/stream-routes.ts";
import { parseSandboxConfig } from "../../sandbox/sandbox-config.ts";
import { rawSocket, streamPrograms } from "./testing-streams.ts";

const { server, token, station, ask, defects } = useServer({ programs: streamPrograms });

const names = Object.keys(streamPaths) as StreamName[];
const pathOf = (name: StreamName, sandbox = "sb_aaaaaaaaaaaa") => streamPaths[name].replace("{sandbox}", sandbox).replace("{port}", "8080");

/** A first message for each stream that makes it answer. */
const firsts: Partial<Record<StreamName, object>> = {
  "events.stream": { type: "subscribe" },
  "sandboxes.createHeld": { type: "create", spec: {} },
  "processes.stream": { type: "start", argv: ["true"] },
};

/** Resolves with the HTTP answer to a refused WebSocket. */
function refusal(raw: ReturnType<typeof rawSocket>): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    raw.ws.on("unexpected-response", (_, response) => {
      let body = "";
      response.on("data", (data: Buffer) => {
        body += data;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
    });
    raw.ws.on("open", () => reject(new Error("it was let in")));
  });
}

describe.each(names)("%s", (name) => {
  test("rejects a missing or invalid token, and pages of other origins", async () => {
    const as = await token("admin");
    expect(await refusal(rawSocket(server(), pathOf(name)))).toMatchObject({
      status: 401,
      body: expect.stringContaining("unauthenticated"),
    });
    expect(await refusal(rawSocket(server(), pathOf(name), { as: "wrong" }))).toMatchObject({ status: 401 });
    const foreign = await refusal(rawSocket(server(), pathOf(name), { as, origin: "https://elsewhere.example" }));
    expect(foreign).toMatchObject({ status: 403 });
  });

  test.each(["read", "run", "admin"] as const)("requires its scope: with a token for %s", async (scope) => {
    const raw = rawSocket(server(), pathOf(name), { as: await token(scope) });
    if (firsts[name] !== undefined) await raw.send(firsts[name]);
    if (scope === "read" && streamRoutes[name].scope !== "read") {
      expect(await raw.message("problem")).toMatchObject({ problem: { code: "denied" } });
      expect(await raw.closed).toBe(4403);
    } else if (name === "events.stream" || name === "sandboxes.createHeld") {
      await raw.message(name === "events.stream" ? "subscribed" : "held");
      raw.ws.close();
      await raw.closed;
    } else {
      expect(await raw.message("problem")).toMatchObject({ problem: { code: "not_found" } });
      expect(await raw.closed).toBe(4404);
    }
    expect(defects).toEqual([]);
  });

  test("accepts a token as a subprotocol, and never echoes it", async () => {
    const as = await token("admin");
    const raw = rawSocket(server(), pathOf(name), { protocols: [`caisson.bearer.${as}`, "caisson.v1"] });
    let head = "";
    raw.ws.on("upgrade", ({ headers }) => {
      head = JSON.stringify(headers);
    });
    await raw.opened;
    expect(raw.ws.protocol).toBe("caisson.v1");
    expect(head).not.toContain(as);
    raw.ws.terminate();
  });

  test("ends within a second when its token is revoked", async () => {
    await using held = await station().sandboxes.create({ spec: parseSandboxConfig({ keep: true }) });
    const process = await held.spawn({ argv: ["echo-server"] });
    const { value } = await process.output[Symbol.asyncIterator]().next();
    const port = String(Buffer.from((value as { data: Uint8Array }).data)).trim();
    const as = await token("admin");
    const raw = rawSocket(server(), pathOf(name, held.id).replace("8080", port), { as });
    if (name === "processes.stream") await raw.send({ type: "start", argv: ["sleep", "1000"], detachGraceMs: 60_000 });
    else if (firsts[name] !== undefined) await raw.send(firsts[name]);
    await raw.opened;
    await vi.waitFor(() => expect(raw.messages.length).toBeGreaterThan(0), { timeout: 60_000 });
    for (const { id } of await station().tokens.list()) await station().tokens.revoke(id);
    expect(await ownMs(raw.closed)).toBeLessThan(1_500);
    expect(await raw.closed).toBe(4401);
    expect(raw.messages.at(-1)).toMatchObject({ type: "problem", problem: { code: "unauthenticated" } });
    // Revoking the token also ends the process that the stream started.
    const left = async () => (await held.processes()).filter(({ state, ref }) => state === "running" && ref !== process.ref);
    await vi.waitFor(async () => expect(await left()).toEqual([]), { timeout: 60_000 });
  });

  test("reports what is wrong with its messages", async () => {
    await using held = await station().sandboxes.create({ spec: parseSandboxConfig({ keep: true }) });
    const as = await token("admin");
    const type = fc.constantFrom("start", "attach", "subscribe", "filter", "taken", "create", "release", "kill", "resize", "signal", "end");
    const nearly = fc.record(
      { type, argv: fc.anything(), ref: fc.anything(), bytes: fc.anything(), spec: fc.object() },
      { requiredKeys: ["type"] },
    );
    const message = fc.oneof(
      fc.json(),
      fc.string(),
      nearly.map((value) => JSON.stringify(value) ?? "null"),
      fc.uint8Array({ maxLength: 200 }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(message, { minLength: 1, maxLength: 5 }), async (messages) => {
        const raw = rawSocket(server(), pathOf(name, held.id), { as });
        for (const each of messages) await raw.send(each);
        await raw.send("the last one is malformed for all of them");
        const code = await raw.closed;
        const last = raw.messages.at(-1);
        const isTold = last?.type === "problem" && code === 4000 + (last.problem as { status: number }).status;
        expect(isTold || code === 1000, `${code} ${JSON.stringify(last)}`).toBe(true);
      }),
      { numRuns: tries(40, 10) },
    );
    expect(defects).toEqual([]);
    expect((await ask("/v1/status")).status).toBe(200);
  });
});

describe("a WebSocket", () => {
  test("exists only at the documented paths", async () => {
    const as = await token("admin");
    for (const path of ["/v1/streams", "/v1/runs", "/", "/v1/sandboxes/a/b/process", "//", "/v1/sandboxes/%zz/process/"]) {
      expect(await refusal(rawSocket(server(), path, { as })), path).toMatchObject({ status: 404 });
    }
    const bad = rawSocket(server(), "/v1/sandboxes/%2e%2e%2fetc/process", { as });
    expect(await bad.message("problem")).toMatchObject({ problem: { code: "invalid" } });
    const query = rawSocket(server(), "/v1/sandboxes/a/ports/80/connection?windowBytes=1", { as });
    expect(await query.message("problem")).toMatchObject({ problem: { code: "invalid" } });
  });

  test("rejects messages that are too large or too many", async () => {
    const as = await token("read");
    const large = rawSocket(server(), "/v1/stream", { as });
    await large.send("x".repeat(2 * 1024 * 1024));
    expect(await large.closed).toBe(1009);
    const flood = rawSocket(server(), "/v1/stream", { as });
    await flood.send({ type: "subscribe" });
    for (let n = 0; n < 8_000; n += 1) await flood.send({ type: "taken", events: 0 });
    expect(await flood.closed).toBe(4429);
    expect(flood.messages.at(-1)).toMatchObject({ problem: { code: "busy" } });
  });

  test("leaves nothing behind if it breaks off or is not a WebSocket", async () => {
    const as = await token("admin");
    const { port } = new URL(server().status.url);
    for (const rest of ["", "sec-websocket-key: x\r\nsec-websocket-version: 13\r\n\r\n", "sec-websocket-version: 99\r\n\r\n"]) {
      const socket = connectSocket(Number(port), "127.0.0.1");
      const closed = new Promise<string>((resolve) => {
        let text = "";
        socket.on("data", (data) => {
          text += data;
        });
        socket.on("close", () => resolve(text));
        socket.on("error", () => {});
      });
      socket.write(
        `GET /v1/stream HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${as}\r\nconnection: upgrade\r\nupgrade: websocket\r\n${rest}`,
      );
      if (rest === "") socket.end();
      expect(await closed).toMatch(rest === "" ? /^(HTTP\/1.1 400.*)?/ : /^HTTP\/1.1 400/);
    }
    expect((await ask("/v1/stream")).status).toBe(404);
    await vi.waitFor(async () => expect(((await (await ask("/v1/status")).json()) as { requests: number }).requests).toBe(1), {
      timeout: 60_000,
    });
  });

  test("finds nothing that belongs to another owner", async () => {
    await using held = await station().sandboxes.create({ spec: parseSandboxConfig({ keep: true }) });
    const as = (await station().tokens.create({ name: "other", scope: "run", owner: "other" })).token;
    for (const name of ["sandboxes.hold", "processes.stream", "ports.connect"] as const) {
      const raw = rawSocket(server(), pathOf(name, held.id), { as });
      if (firsts[name] !== undefined) await raw.send(firsts[name]);
      expect(await raw.message("problem"), name).toMatchObject({ problem: { code: "not_found" } });
    }
  });

  test("is asked to reconnect when the station ends", async () => {
    const raw = rawSocket(server(), "/v1/stream", { as: await token("read") });
    await raw.send({ type: "subscribe" });
    await raw.message("subscribed");
    await server().close();
    expect(await raw.closed).toBe(1001);
  });
});
