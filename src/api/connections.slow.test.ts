import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { useCertificate } from "./testing-certificate.ts";

/** Fewer than the tests open, whatever the machine's limit on open files. */
const CONNECTIONS_MAX = 1_024;
const { server, start, token, ask } = useServer({ connectionsMax: CONNECTIONS_MAX });
const certificate = useCertificate();

const open: Socket[] = [];
afterEach(() => {
  for (const socket of open.splice(0)) socket.destroy();
});

/** Opens connections that send nothing. Resolves when the station has accepted or closed all of them. */
async function silent(count: number, { port = server().port, localAddress = "127.0.0.1" } = {}): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => connect({ port, host: "127.0.0.1", localAddress }).on("error", () => {}));
  open.push(...sockets);
  await Promise.all(sockets.map((socket) => Promise.race([once(socket, "connect"), once(socket, "close")])));
  return sockets;
}

/** Sends one request on a connection, and resolves with the beginning of the answer. */
async function send(socket: Socket, path: string, headers: Record<string, string> = {}): Promise<string> {
  const lines = Object.entries({ host: "127.0.0.1", ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET ${path} HTTP/1.1\r\n${lines.join("")}\r\n`);
  return String((await once(socket, "data"))[0]);
}

describe("connections without a token", () => {
  test.each(["127.0.0.1", "127.0.0.9"])("do not keep callers out, even 1,500 silent ones from %s", async (localAddress) => {
    const as = await token("read");
    await silent(1_500, { localAddress });
    expect((await ask("/v1/status", { as })).status).toBe(200);
  });

  test("do not keep callers out before the TLS handshake, and time out", async () => {
    await server().close();
    await using secure = await start({ tls: certificate.files() });
    const sockets = await silent(1_500, { port: secure.port });
    const [answer] = (await once(certificate.get(`https://127.0.0.1:${secure.port}/healthz`), "response")) as [IncomingMessage];
    expect(answer.resume().statusCode).toBe(200);
    const last = sockets.at(-1) as Socket;
    if (!last.closed) await once(last, "close");
  });

  test("are closed after the answer, unlike those with a token", async () => {
    const as = await token("read");
    const answers: [path: string, headers: Record<string, string>, status: number][] = [
      ["/healthz", {}, 200],
      ["/readyz", {}, 200],
      ["/v1/status", {}, 401],
      ["/v1/status", { authorization: "Bearer wrong" }, 401],
      ["/v1/status", { host: "evil.test", authorization: `Bearer ${as}` }, 403],
      ["/metrics", {}, 401],
      ["/nothing", {}, 401],
    ];
    for (const [path, headers, status] of answers) {
      const [socket] = (await silent(1)) as [Socket];
      const answer = await send(socket, path, headers);
      expect([path, answer]).toEqual([path, expect.stringMatching(new RegExp(`^HTTP/1.1 ${status} [\\s\\S]*connection: close`, "i"))]);
      if (!socket.closed) await once(socket, "close");
    }
    const [socket] = (await silent(1)) as [Socket];
    for (let each = 0; each < 3; each++)
      expect(await send(socket, "/v1/status", { authorization: `Bearer ${as}` })).toMatch(/^HTTP\/1\.1 200 [\s\S]*connection: keep-alive/i);
    expect(await send(socket, "/v1/status", { authorization: "Bearer wrong" })).toMatch(/^HTTP\/1\.1 401 [\s\S]*connection: close/i);
  });
});

test.each(["/healthz", "/readyz"])("%s rejects a foreign host name", async (path) => {
  const statusOf = async (host: string) => {
    const request = httpRequest({ host: "127.0.0.1", port: server().port, path, headers: { host }, agent: false }).end();
    const [answer] = (await once(request, "response")) as [IncomingMessage];
    return answer.resume().statusCode;
  };
  for (const host of ["127.0.0.1", `localhost:${server().port}`, "[::1]:1"]) expect([host, await statusOf(host)]).toEqual([host, 200]);
  for (const host of ["evil.test", "127.0.0.1.evil.test"]) expect([host, await statusOf(host)]).toEqual([host, 403]);
});

test("accepts valid tokens from an address that sent too many wrong ones", async () => {
  const wrong = async () => (await ask("/v1/status", { as: "tok_aaaaaaaaaaaa_wrong" })).status;
  for (let each = 0; each < 20; each++) expect(await wrong()).toBe(401);
  expect(await wrong()).toBe(429);
  expect((await ask("/v1/status", { as: await token("read") })).status).toBe(200);
});
