import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer, request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openServer } from "../../../test/support/api-station.ts";
import { createPreview, type Preview } from "../../network/preview/preview.ts";
import { connectLocal, serveLocal } from "../../network/preview/testing-preview.ts";
import type { RunningServer } from "../server.ts";

const publicUrl = "https://caisson.example.com";
const previewsAt = "https://*.previews.example.com";

/** A program inside: returns the request it received, and echoes on an upgraded socket. */
const program = createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += String(part);
  response.writeHead(200, { "Access-Control-Allow-Origin": `http://localhost:${inside}`, "X-Said": "one", "Set-Cookie": ["a=1", "b=2"] });
  response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body }));
});
program.on("upgrade", (request, socket) => {
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\nX-Origin: ${request.headers.origin}\r\n\r\n`,
  );
  socket.on("error", () => {}).pipe(socket);
});

let inside = 0;
let opened: Awaited<ReturnType<typeof openServer>>;
let served: Awaited<ReturnType<typeof serveLocal>>;
let preview: Preview;
let server: RunningServer;

beforeEach(async () => {
  opened = await openServer();
  await opened.server.close();
  served = await serveLocal(program);
  inside = served.port;
  preview = await createPreview({ connect: connectLocal, port: inside });
  const { token, plainUrl, listenPort, url } = preview;
  const view = {
    id: "pv_aaaaaaaaaaaa",
    openedAt: new Date().toISOString(),
    sandbox: "sb_aaaaaaaaaaaa",
    port: inside,
    token,
    plainUrl,
    listenPort,
    url,
  };
  Object.assign(opened.station.networks, { previews: async () => [view] });
  server = await opened.start({ publicUrl, previewsAt });
});
afterEach(async () => {
  await server.close();
  await preview.revoke();
  await served[Symbol.asyncDispose]();
  await opened.close();
});

const host = "pv-aaaaaaaaaaaa.previews.example.com";
const origin = `https://${host}`;
/** The browser's cookie after it opened the URL with the token. */
const cookie = () => `caisson-preview-${preview.listenPort}=${preview.token}`;

async function ask(path: string, options: RequestOptions & { body?: string; host?: string } = {}) {
  const { body, host: name = host, headers, ...rest } = options;
  const own = name === host ? { cookie: cookie() } : {};
  const to = { host: "127.0.0.1", port: server.port, path, agent: false as const };
  const request = httpRequest({ ...to, headers: { host: name, ...own, ...headers }, ...rest });
  request.end(body);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  let text = "";
  for await (const part of response) text += String(part);
  return { status: response.statusCode, headers: response.headers, text };
}

describe("a request to a preview name", () => {
  test("reaches the program inside as a local request, without the token", async () => {
    const answer = await ask("/a?b=c", {
      method: "POST",
      body: "said",
      headers: { origin, referer: `${origin}/x`, "x-forwarded-host": host, connection: "close, x-hop", "x-hop": "1" },
    });
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({ "x-said": "one", "set-cookie": ["a=1", "b=2"], "access-control-allow-origin": origin });
    expect(JSON.parse(answer.text)).toMatchObject({
      ...{ method: "POST", url: "/a?b=c", body: "said" },
      headers: { host: `localhost:${inside}`, origin: `http://localhost:${inside}`, referer: `http://localhost:${inside}/x` },
    });
    expect(answer.text).not.toContain(preview.token);
    expect(JSON.parse(answer.text).headers["x-hop"]).toBeUndefined();
  });

  test("needs the token, first in the URL and then in a cookie for frames", async () => {
    const entered = await ask(`/a?caisson-token=${preview.token}&b=c`, { headers: { cookie: "" } });
    expect([entered.status, entered.headers.location]).toEqual([302, "/a?b=c"]);
    expect(entered.headers["set-cookie"]).toEqual([`${cookie()}; HttpOnly; SameSite=None; Secure; Partitioned; Path=/`]);
    for (const headers of [
      { cookie: "" },
      { cookie: `caisson-preview-${preview.listenPort}=${"a".repeat(32)}` },
      // A page of another origin must not act for the holder of the cookie.
      { cookie: cookie(), origin: "https://caisson.example.com" },
      { cookie: cookie(), "sec-fetch-site": "same-site", "sec-fetch-mode": "cors" },
    ])
      expect((await ask("/", { headers })).status).toBe(401);
  });

  test("never reaches the API or the console, whatever its token", async () => {
    const { token } = await opened.station.tokens.create({ name: "all", scope: "admin" });
    const authorization = `Bearer ${token}`;
    for (const path of ["/v1/sandboxes", "/v1/status", "/", "/runs"]) {
      // The program inside answers, as for any other path.
      expect(JSON.parse((await ask(path, { headers: { authorization } })).text)).toMatchObject({ url: path });
      for (const other of ["previews.example.com", "pv-bbbbbbbbbbbb.previews.example.com", `x.${host}`]) {
        const { status, text } = await ask(path, { host: other, headers: { authorization } });
        expect([status, text]).toEqual([404, expect.stringContaining("no such preview")]);
      }
    }
    expect((await ask("/v1/status", { host: "caisson.example.com", headers: { authorization } })).status).toBe(200);
  });

  test("cannot be sent to the station's own name instead", async () => {
    for (const own of ["caisson.example.com", `127.0.0.1:${server.port}`])
      expect((await ask(`/a?caisson-token=${preview.token}`, { host: own })).status).toBe(401);
    expect((await ask("/a", { host: `${preview.token}.localhost` })).status).toBe(403);
  });

  test("does not follow a full URL in the request line", async () => {
    expect((await ask(`http://caisson.example.com/v1/status`)).status).toBe(404);
  });

  test("can be upgraded to a socket, but not for an unknown preview", async () => {
    const upgrade = (name: string) => {
      const socket = connect(server.port, "127.0.0.1").on("error", () => {});
      socket.write(
        `GET /hmr HTTP/1.1\r\nHost: ${name}\r\nOrigin: https://${name}\r\nCookie: ${cookie()}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
      );
      return socket;
    };
    const socket = upgrade(host);
    const head = String((await once(socket, "data"))[0]);
    expect(head).toMatch(/^HTTP\/1\.1 101 /);
    expect(head).toContain(`X-Origin: http://localhost:${inside}\r\n`);
    socket.write("echoed");
    expect(String((await once(socket, "data"))[0])).toBe("echoed");
    const closed = once(socket, "close");
    await preview.revoke();
    await closed;
    expect(String((await once(upgrade("pv-bbbbbbbbbbbb.previews.example.com"), "data"))[0])).toMatch(/^HTTP\/1\.1 404 /);
  });

  test("gets 502 for a closed preview", async () => {
    await preview.revoke();
    expect(await ask("/")).toMatchObject({ status: 502, text: "The preview cannot be reached.\n" });
  });
});

test("lets the console frame only these names", async () => {
  await mkdir(join(opened.base, "console"), { recursive: true });
  await writeFile(join(opened.base, "console", "index.html"), "<!doctype html><title>Caisson</title>");
  const { headers } = await ask("/", { host: "caisson.example.com" });
  expect(headers["content-security-policy"] ?? "").toContain(
    "frame-src http://*.localhost:* http://127.0.0.1:* https://*.previews.example.com;",
  );
});

test("the API returns previews with their public URLs", async () => {
  const { token } = await opened.station.tokens.create({ name: "all", scope: "admin" });
  const { text } = await ask("/v1/previews", { host: "caisson.example.com", headers: { authorization: `Bearer ${token}` } });
  expect(JSON.parse(text).previews).toMatchObject([{ url: `${origin}/?caisson-token=${preview.token}`, listenPort: preview.listenPort }]);
});
