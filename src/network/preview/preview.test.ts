import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, get, request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CaissonError } from "../../contract/error/error.ts";
import { createPreview, type Preview, type PreviewOptions } from "./preview.ts";
import { connectLocal, exchange, serveLocal } from "./testing-preview.ts";

const hashOf = (data: Buffer) => createHash("sha256").update(data).digest("hex");

/** A program inside that reports its requests, streams, accepts uploads, and echoes on an upgraded socket. */
const program = createServer(async (request, response) => {
  if (request.url === "/upload") {
    const hash = createHash("sha256");
    for await (const part of request) hash.update(part as Buffer);
    response.end(hash.digest("hex"));
  } else if (request.url === "/download") {
    response.writeHead(200, { "Content-Length": download.length }).end(download);
  } else if (request.url === "/events") {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write("data: 1\n\n");
    program.once("more", () => response.end("data: 2\n\n"));
  } else if (request.url === "/away") {
    response.writeHead(302, { Location: `http://localhost:${inside}/there`, "Set-Cookie": "a=1; Domain=localhost" }).end();
  } else {
    response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers }));
  }
});
program.on("upgrade", (request, socket, first) => {
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\nX-Host: ${request.headers.host}\r\n\r\n`);
  socket.write(first);
  socket.pipe(socket);
});
const download = randomBytes(4_000_000);

let inside = 0;
let preview: Preview;
const disposals: AsyncDisposable[] = [];
const previews: Preview[] = [];

async function makePreview(options: Partial<PreviewOptions> = {}): Promise<Preview> {
  const newPreview = await createPreview({ connect: connectLocal, port: inside, ...options });
  previews.push(newPreview);
  return newPreview;
}

beforeAll(async () => {
  const served = await serveLocal(program);
  disposals.push(served);
  inside = served.port;
  preview = await makePreview();
});
afterAll(async () => {
  for (const each of previews) await each.revoke();
  for (const each of disposals) await each[Symbol.asyncDispose]();
});

/** Uses the preview's host name by default, but connects to 127.0.0.1: Node does not resolve names below localhost. */
async function ask(
  path: string,
  options: RequestOptions & { body?: Buffer; of?: Preview } = {},
): Promise<{ response: IncomingMessage; text: string }> {
  const { of = preview, body, headers, ...rest } = options;
  const host = new URL(of.url).host;
  const asking = httpRequest({ port: of.listenPort, host: "127.0.0.1", path, headers: { host, ...headers }, agent: false, ...rest });
  asking.end(body);
  const [response] = (await once(asking, "response")) as [IncomingMessage];
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  return { response, text: Buffer.concat(parts).toString() };
}

describe("with the token", () => {
  test("has a URL with an unguessable name on this machine", () => {
    expect(preview.url).toMatch(/^http:\/\/[a-z2-7]{32}\.localhost:\d+\/$/);
    expect(preview.listenHost).toBe("127.0.0.1");
  });

  test("shows the program local requests, and never the token", async () => {
    const { host, origin } = new URL(preview.url);
    const cookie = `caisson-preview-${preview.listenPort}=${preview.token}; mine=1`;
    const { text } = await ask("/a?b=c", { method: "PUT", headers: { host, origin, referer: `${origin}/x`, cookie } });
    expect(JSON.parse(text)).toMatchObject({
      method: "PUT",
      url: "/a?b=c",
      headers: {
        host: `localhost:${inside}`,
        origin: `http://localhost:${inside}`,
        referer: `http://localhost:${inside}/x`,
        cookie: "mine=1",
      },
    });
    expect(text).not.toContain(preview.token);
  });

  test("keeps redirects and cookies of the program on the preview", async () => {
    const { response } = await ask("/away");
    expect(response.headers).toMatchObject({ location: "/there", "set-cookie": ["a=1"] });
  });

  test("carries uploads and downloads unchanged", async () => {
    expect((await ask("/upload", { method: "POST", body: download })).text).toBe(hashOf(download));
    const { response } = await ask("/download", { method: "HEAD" });
    expect(response.headers["content-length"]).toBe(String(download.length));
    const request = get({ port: preview.listenPort, path: "/download", headers: { host: new URL(preview.url).host } });
    const [answer] = (await once(request, "response")) as [IncomingMessage];
    const parts: Buffer[] = [];
    for await (const part of answer) parts.push(part as Buffer);
    expect(hashOf(Buffer.concat(parts))).toBe(hashOf(download));
  });

  test("delivers events as they are sent", async () => {
    const request = get({ port: preview.listenPort, path: "/events", headers: { host: new URL(preview.url).host } });
    const [response] = (await once(request, "response")) as [IncomingMessage];
    expect(String((await once(response, "data"))[0])).toBe("data: 1\n\n");
    const ended = once(response, "end");
    program.emit("more");
    expect(String((await once(response, "data"))[0])).toBe("data: 2\n\n");
    await ended;
  });

  test("upgrades sockets and carries both ways", async () => {
    const socket = connect(preview.listenPort, "127.0.0.1");
    const { host } = new URL(preview.url);
    socket.write(`GET /hmr HTTP/1.1\r\nHost: ${host}\r\nOrigin: http://${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
    expect(String((await once(socket, "data"))[0])).toMatch(new RegExp(`^HTTP/1.1 101 .*X-Host: localhost:${inside}\r\n.*\r\n\r\n$`, "s"));
    for (const word of ["one", "two"]) {
      socket.write(word);
      expect(String((await once(socket, "data"))[0])).toBe(word);
    }
    socket.destroy();
  });
});

describe("without the token", () => {
  const bad = (): Record<string, string>[] => [
    { host: `127.0.0.1:${preview.listenPort}` },
    { host: "localhost" },
    { host: `${preview.token.replace(/^./, (first) => (first === "a" ? "b" : "a"))}.localhost` },
    { host: "127.0.0.1", cookie: `caisson-preview-${preview.listenPort}=x` },
  ];

  test("refuses every method and reveals nothing", async () => {
    for (const headers of bad()) {
      for (const method of ["GET", "HEAD", "POST", "DELETE", "OPTIONS"]) {
        const { response, text } = await ask("/", { method, headers });
        expect(response.statusCode).toBe(401);
        expect(text).not.toContain(preview.token);
        expect(text).not.toContain(String(inside));
      }
    }
  });

  test("refuses the second request of a connection, and a socket", async () => {
    const { host } = new URL(preview.url);
    const two = await exchange(
      preview.listenPort,
      `GET /a HTTP/1.1\r\nHost: ${host}\r\n\r\nGET /b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
    );
    expect(two.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 401"]);
    const socket = await exchange(
      preview.listenPort,
      "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade, close\r\nUpgrade: websocket\r\n\r\n",
    );
    expect(socket).toMatch(/^HTTP\/1\.1 401 /);
  });

  test("refuses the token of another preview", async () => {
    const another = await makePreview();
    expect((await ask("/", { headers: { host: new URL(another.url).host } })).response.statusCode).toBe(401);
    expect((await ask(`/?caisson-token=${another.token}`, { headers: { host: "127.0.0.1" } })).response.statusCode).toBe(401);
    expect((await ask("/", { of: another })).response.statusCode).toBe(200);
  });
});

test("sets a cookie at the plain URL, which opens the preview", async () => {
  const { pathname, search, host } = new URL(preview.plainUrl);
  const { response } = await ask(`${pathname}${search}&x=1`, { headers: { host } });
  expect(response.statusCode).toBe(302);
  expect(response.headers.location).toBe("/?x=1");
  const cookie = response.headers["set-cookie"]?.[0] ?? "";
  expect(cookie).toMatch(/HttpOnly; SameSite=Strict/);
  const inside = await ask("/?x=1", { headers: { host, cookie: cookie.split(";")[0] ?? "" } });
  expect(inside.response.statusCode).toBe(200);
  expect(inside.text).not.toContain(preview.token);
});

test("reports a port without a listener, and the ports with one", async () => {
  const absent = await makePreview({
    port: 1,
    listeners: async () => [
      { port: 3000, address: "127.0.0.1" },
      { port: 19_080, address: "127.0.0.1" },
    ],
  });
  const { response, text } = await ask("/", { of: absent });
  expect(response.statusCode).toBe(502);
  expect(text).toBe("Nothing listens on port 1 of the sandbox.\nListening ports: 3000.\n");
  const page = await ask("/", { of: absent, headers: { accept: "text/html" } });
  expect(page.response.headers["content-type"]).toBe("text/html; charset=utf-8");
});

test("distinguishes an unreachable sandbox from one without a listener", async () => {
  const lost = await makePreview({
    connect: async () => {
      throw new CaissonError("conflict", "sandbox sb_x is paused");
    },
  });
  expect((await ask("/", { of: lost })).text).toBe(`Port ${inside} of the sandbox cannot be reached: sandbox sb_x is paused\n`);
});

test("ends open connections when revoked, and refuses new ones", async () => {
  const short = await makePreview();
  const { host } = new URL(short.url);
  const socket = connect(short.listenPort, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n`);
  await once(socket, "data");
  const closed = once(socket, "close");
  await Promise.all([short.revoke(), short.revoke(), closed]);
  expect(short.connections()).toBe(0);
  await expect(ask("/", { of: short })).rejects.toMatchObject({ code: "ECONNREFUSED" });
});

test("rejects a port in use and a weak token", async () => {
  await expect(makePreview({ listenPort: preview.listenPort })).rejects.toMatchObject({ code: "conflict" });
  await expect(makePreview({ token: "secret" })).rejects.toMatchObject({ code: "invalid" });
});
