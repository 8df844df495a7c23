import { once } from "node:events";
import type { Duplex } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createAuthority } from "../authority/authority.ts";
import { createEgressRig, type EgressRig, readAll, readHead } from "./testing-egress.ts";

let rig: EgressRig;
const local = ["127.0.0.1"];

beforeEach(async () => {
  rig = await createEgressRig();
  rig.names.set("site.test", local).set("other.test", local);
});
afterEach(() => rig[Symbol.asyncDispose]());

const allow = (port: number, more: object = {}) =>
  rig.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [port], private: true, ...more }] });
/** Sends a request over an open connection and returns everything that comes back. */
async function ask(socket: Parameters<typeof readAll>[0], host: string, path = "/", more = ""): Promise<string> {
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${more}\r\n`);
  return await readAll(socket);
}

describe("CONNECT with passed-through TLS", () => {
  let port: number;
  beforeEach(async () => {
    port = await rig.https((request, response) => response.end(`hello ${request.headers.host}`));
    allow(port);
  });

  test("shows the client the server's own certificate", async () => {
    const { socket, head } = await rig.tunnel(`site.test:${port}`);
    expect(head).toBe("HTTP/1.1 200 Connection Established\r\n\r\n");
    const tls = await rig.secure(socket, "site.test", { ca: rig.world.certificatePem });
    expect(await ask(tls, "site.test")).toContain("hello site.test");
    const closed = rig.eventsOf("network.closed")[0] ?? (await rig.event("network.closed"));
    expect(closed).toMatchObject({ host: "site.test", via: "connect", address: "127.0.0.1", inspected: false, requests: 0 });
    expect(closed.sentBytes).toBeGreaterThan(300);
    expect(closed.receivedBytes).toBeGreaterThan(300);
    expect(rig.egress.stats()).toMatchObject({ sentBytes: closed.sentBytes, receivedBytes: closed.receivedBytes });
  });

  test("answers CONNECT to a denied host with an error, without a lookup", async () => {
    const { head } = await rig.tunnel("evil.test:443");
    expect(head).toMatch(/^HTTP\/1\.1 403 Denied by Caisson: evil\.test is not on/);
    expect(rig.lookedUp).toEqual([]);
    expect((await rig.tunnel("site.test:22")).head).toContain("port_not_allowed");
    expect((await rig.tunnel("169.254.169.254:80")).head).toContain("host_not_allowed");
    expect((await rig.tunnel("site.test")).head).toMatch(/^HTTP\/1\.1 400/);
  });

  test("refuses another name in TLS with an alert", async () => {
    const { socket } = await rig.tunnel(`site.test:${port}`);
    await expect(rig.secure(socket, "other.test")).rejects.toMatchObject({ code: expect.stringContaining("UNRECOGNIZED_NAME") });
    expect(rig.eventsOf("network.denied")).toMatchObject([{ host: "site.test", port, reason: "name_mismatch", via: "connect" }]);
  });

  test("accepts TLS without a name", async () => {
    const nameless = await rig.secure((await rig.tunnel(`site.test:${port}`)).socket, "", { checkServerIdentity: () => undefined });
    expect(await ask(nameless, "site.test")).toContain("hello");
    // An open policy allows private addresses only by rules.
    rig.setPolicy({ mode: "open" });
    expect((await rig.tunnel(`site.test:${port}`)).head).toContain("private_address");
  });

  test("needs a rule for the address if the target is one, whatever name TLS has", async () => {
    expect((await rig.tunnel(`127.0.0.1:${port}`)).head).toContain("host_not_allowed");
    rig.setPolicy({ mode: "allow", rules: [{ host: "127.0.0.1", ports: [port], private: true }] });
    const tls = await rig.secure((await rig.tunnel(`127.0.0.1:${port}`)).socket, "site.test");
    expect(await ask(tls, "site.test")).toContain("hello");
    expect(rig.lookedUp).toEqual([]);
  });

  test("refuses a malformed ClientHello", async () => {
    const { socket } = await rig.tunnel(`site.test:${port}`);
    socket.write(Buffer.from([22, 3, 1, 0, 0, 1, 2, 3]));
    expect(await readAll(socket)).toBe("\x15\x03\x03\x00\x02\x02\x31");
    expect(rig.eventsOf("network.denied")).toMatchObject([{ reason: "bad_request" }]);
  });
});

describe("CONNECT with other protocols", () => {
  test("passes on a server that speaks first, and each side's end", async () => {
    const port = await rig.tcp((socket) => {
      socket.write("220 hello\r\n");
      socket.once("data", () => {
        socket.once("end", () => socket.end("bye"));
        socket.write("250 ok\r\n");
      });
      socket.resume();
    });
    allow(port);
    const { socket } = await rig.tunnel(`site.test:${port}`);
    expect(String(await once(socket.resume(), "data"))).toBe("220 hello\r\n");
    socket.write("EHLO x\r\n");
    expect(String(await once(socket, "data"))).toBe("250 ok\r\n");
    socket.end();
    expect(await readAll(socket)).toBe("bye");
  });

  test("passes on a client that speaks first, in any protocol", async () => {
    const port = await rig.tcp((socket) => socket.pipe(socket));
    allow(port);
    const { socket } = await rig.tunnel(`site.test:${port}`);
    socket.write("\0binary");
    expect(String(await once(socket.resume(), "data"))).toBe("\0binary");
    socket.destroy();
    const line = (await rig.tunnel(`site.test:${port}`)).socket;
    line.write("NI");
    line.write("CK x\r\n");
    expect(String(await once(line.resume(), "data"))).toBe("NICK x\r\n");
  });

  test("refuses HTTP/2 without TLS, which could request any host", async () => {
    const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    const received: string[] = [];
    const keep = (socket: Duplex) => socket.on("data", (chunk) => void received.push(String(chunk)));
    const listens = await rig.tcp(keep);
    const speaks = await rig.tcp((socket) => void keep(socket).write(settings));
    for (const port of [listens, speaks]) {
      allow(port);
      const { socket } = await rig.tunnel(`site.test:${port}`);
      // One client sends at once, as programs do. The other lets the server speak first.
      if (port === listens) socket.write(preface);
      expect(await readAll(socket)).toBe("");
    }
    const reasons = rig.eventsOf("network.denied").map(({ reason, text }) => [reason, text.includes("HTTP/2 without TLS")]);
    expect(reasons).toEqual([
      ["bad_request", true],
      ["bad_request", true],
    ]);
    expect(received).toEqual([]);
  });

  test("passes on a client that sends a word and waits, but not a request in pieces", async () => {
    await using hasty = await createEgressRig({ limits: { silentMs: 20 } });
    hasty.names.set("site.test", local);
    const received: string[] = [];
    const port = await hasty.tcp((socket) => {
      socket.on("data", (chunk) => {
        received.push(String(chunk));
        socket.write(`got ${chunk}`);
      });
    });
    hasty.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [port], private: true }] });
    const word = (await hasty.tunnel(`site.test:${port}`)).socket;
    word.write("ping");
    expect(String(await once(word.resume(), "data"))).toBe("got ping");
    const silent = await hasty.tcp((socket) => void socket.on("data", (chunk) => received.push(String(chunk))));
    hasty.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [silent], private: true }] });
    const pieces = (await hasty.tunnel(`site.test:${silent}`)).socket;
    pieces.write("GET ");
    while (!received.includes("GET ")) await new Promise(setImmediate);
    pieces.write("/ HTT");
    while (!received.includes("/ HTT")) await new Promise(setImmediate);
    pieces.write("P/1.1\r\nHost: other.test\r\n\r\n");
    expect(await readAll(pieces)).toBe("");
    expect(received.join("")).not.toContain("other.test");
    expect(hasty.eventsOf("network.denied")).toMatchObject([{ reason: "bad_request" }]);
  });

  test("compares the name in TLS however late it comes", async () => {
    // Long enough for the CONNECT itself on a busy machine, and shorter than the wait below.
    const firstBytesMs = 500;
    await using patient = await createEgressRig({ limits: { silentMs: 5, firstBytesMs } });
    patient.names.set("site.test", local);
    const port = await patient.https((_request, response) => response.end("hello"));
    patient.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [port], private: true }] });
    const { socket } = await patient.tunnel(`site.test:${port}`);
    await new Promise((done) => setTimeout(done, firstBytesMs + 50));
    await expect(patient.secure(socket, "other.test")).rejects.toThrow();
    expect(patient.eventsOf("network.denied")).toMatchObject([{ reason: "name_mismatch" }]);
  });

  test("compares each Host in HTTP, even after an empty line or odd spaces", async () => {
    const port = await rig.http((request, response) => response.end(`hello ${request.headers.host}`));
    allow(port);
    expect(await ask((await rig.tunnel(`site.test:${port}`)).socket, `site.test:${port}`)).toContain(`hello site.test:${port}`);
    expect(await ask((await rig.tunnel(`site.test:${port}`)).socket, "other.test")).toMatch(/^HTTP\/1\.1 403 [\s\S]*name_mismatch/);
    for (const line of ["\r\nGET / HTTP/1.1", "GET  /  HTTP/1.1", "GET\t/ HTTP/1.1", "get / http/1.1"]) {
      const { socket } = await rig.tunnel(`site.test:${port}`);
      socket.write(`${line}\r\nHost: other.test\r\n\r\n`);
      expect(await readAll(socket), line).toMatch(/^HTTP\/1\.1 40[03]/);
    }
  });

  test("applies methods and paths to HTTP, even if the head comes in pieces", async () => {
    const port = await rig.http((_request, response) => response.end("hello"));
    allow(port, { paths: ["/api"] });
    const { socket } = await rig.tunnel(`site.test:${port}`);
    socket.write("GET /ap");
    await new Promise((done) => setTimeout(done, 20));
    socket.write(`i HTTP/1.1\r\nHost: site.test:${port}\r\n\r\n`);
    expect(await readHead(socket)).toContain("200 OK");
    await once(socket.resume(), "data");
    expect(await ask(socket, `site.test:${port}`, "/admin")).toContain("path_not_allowed");
  });

  test("passes only HTTP if requests must be inspected, and ends silent clients", async () => {
    await using hasty = await createEgressRig({ limits: { firstBytesMs: 100 } });
    hasty.names.set("site.test", local);
    const port = await hasty.tcp((socket) => socket.pipe(socket));
    hasty.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [port], private: true, methods: ["GET"] }] });
    const { socket } = await hasty.tunnel(`site.test:${port}`);
    socket.write("SSH-2.0-client\r\n");
    expect(await readAll(socket)).toBe("");
    expect(hasty.eventsOf("network.denied")).toMatchObject([{ reason: "bad_request" }]);
    expect(await readAll((await hasty.tunnel(`site.test:${port}`)).socket)).toBe("");
  });
});

describe("inspected TLS", () => {
  test("decides on each request separately", async () => {
    const seen: string[] = [];
    const port = await rig.https((request, response) => {
      seen.push(`${request.method} ${request.url} ${request.headers.host}`);
      response.end("hello");
    });
    allow(port, { methods: ["GET"], paths: ["/api"] });
    const tls = await rig.secure((await rig.tunnel(`site.test:${port}`)).socket, "site.test", {
      ca: rig.inside.certificatePem,
      ALPNProtocols: ["h2", "http/1.1"],
    });
    expect(tls.alpnProtocol).toBe("http/1.1");
    tls.write(`GET /api/1 HTTP/1.1\r\nHost: site.test:${port}\r\n\r\n`);
    expect(await readHead(tls)).toContain("200 OK");
    await once(tls.resume(), "data");
    tls.write(`POST /api/2 HTTP/1.1\r\nHost: site.test:${port}\r\nContent-Length: 0\r\n\r\n`);
    expect(await readHead(tls)).toContain("method_not_allowed");
    await once(tls.resume(), "data");
    expect(await ask(tls, `site.test:${port}`, "/admin")).toContain("path_not_allowed");
    expect(seen).toEqual([`GET /api/1 site.test:${port}`]);
    const closed = rig.eventsOf("network.closed")[0] ?? (await rig.event("network.closed"));
    expect(closed).toMatchObject({ host: "site.test", inspected: true, requests: 1, rule: `GET site.test:${port} /api` });
  });

  test("refuses another Host inside and another name outside", async () => {
    const port = await rig.https((_request, response) => response.end("hello"));
    allow(port, { methods: ["GET"] });
    const tls = await rig.secure((await rig.tunnel(`site.test:${port}`)).socket, "site.test");
    expect(await ask(tls, "other.test")).toContain("name_mismatch");
    await expect(rig.secure((await rig.tunnel(`site.test:${port}`)).socket, "other.test")).rejects.toThrow();
  });

  test.each([
    ["signed by an unknown authority", { authority: createAuthority() }, "UNABLE_TO"],
    ["for another name", { host: "other.test" }, "ALTNAME_INVALID"],
  ])("answers 502 for a server certificate %s", async (_what, options, code) => {
    let requests = 0;
    const port = await rig.https(() => void requests++, options);
    allow(port, { methods: ["GET"] });
    const tls = await rig.secure((await rig.tunnel(`site.test:${port}`)).socket, "site.test");
    const answer = await ask(tls, `site.test:${port}`);
    expect(answer).toMatch(/^HTTP\/1\.1 502 [\s\S]*x-caisson-denied: not_verified/);
    expect(answer).toContain(code);
    expect(requests).toBe(0);
    expect(rig.eventsOf("network.denied")).toMatchObject([{ reason: "not_verified", host: "site.test" }]);
  });

  test("leaves nothing behind if a client does not trust our certificate", async () => {
    const port = await rig.https(() => {});
    allow(port, { methods: ["GET"] });
    await expect(
      rig.secure((await rig.tunnel(`site.test:${port}`)).socket, "site.test", { ca: rig.world.certificatePem }),
    ).rejects.toThrow();
    if (rig.eventsOf("network.closed").length === 0) await rig.event("network.closed");
    await rig.egress.close();
  });
});
