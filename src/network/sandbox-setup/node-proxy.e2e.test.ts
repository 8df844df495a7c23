import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createAuthority } from "../authority/authority.ts";

/** This Node, and the machine's own if it is another one: an old one without support for proxies. */
const nodes = [process.execPath, "/usr/bin/node"].filter((path) => existsSync(path));
const preload = join(import.meta.dirname, "node-proxy.cjs");

let folder = "";
let proxyPort = 0;
let plainPort = 0;
const proxyRequests: string[] = [];
const servers: Server[] = [];
const sockets = new Set<Socket>();

async function listen(server: Server): Promise<number> {
  servers.push(server);
  server.on("connection", (socket: Socket) => sockets.add(socket.on("error", () => {})));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "caisson-node-proxy-"));
  const authority = createAuthority();
  await writeFile(join(folder, "ca.pem"), authority.certificatePem);
  plainPort = await listen(
    createServer((request, response) => {
      response.end(`plain ${request.url}`);
    }),
  );
  const securePort = await listen(
    createSecureServer({ SNICallback: (name, done) => done(null, authority.contextFor(name)) }, (request, response) => {
      let bytes = 0;
      request.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
      });
      request.on("end", () => response.end(`secure ${request.headers.host} ${request.url} ${bytes}`));
    }),
  );
  const proxy = createServer((request, response) => {
    proxyRequests.push(`${request.method} ${request.url}`);
    response.end("as a plain proxy");
  });
  proxy.on("connect", (request, client: Socket) => {
    proxyRequests.push(`CONNECT ${request.url}`);
    if (request.url?.startsWith("refused.")) {
      client.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 11\r\n\r\nnot allowed");
      return;
    }
    const upstream = connect(request.url?.endsWith(":443") ? securePort : plainPort, "127.0.0.1");
    sockets.add(upstream.on("error", () => client.destroy()));
    upstream.once("connect", () => {
      client.write("HTTP/1.1 200 OK\r\n\r\n");
      client.pipe(upstream).pipe(client);
    });
  });
  proxyPort = await listen(proxy);
});
afterEach(() => proxyRequests.splice(0));
afterAll(async () => {
  for (const server of servers) server.close();
  for (const socket of sockets) socket.destroy();
  await rm(folder, { recursive: true, force: true });
});

const requests = `
const get = (module, url, options = {}) =>
  new Promise((resolve) => {
    module.get(url, options, (response) => {
      let text = "";
      response.on("data", (chunk) => (text += chunk)).on("end", () => resolve(text));
    }).on("error", (error) => resolve(error.message));
  });
const say = (value) => console.log(JSON.stringify(value));
`;

interface Ran {
  said: unknown[];
  stderr: string;
}

async function run(node: string, program: string, options: { name?: string; env?: Record<string, string> } = {}): Promise<Ran> {
  const path = join(folder, options.name ?? "program.cjs");
  await writeFile(path, `${requests}${program}`);
  const env = {
    PATH: "/usr/bin:/bin",
    HTTPS_PROXY: `http://127.0.0.1:${proxyPort}`,
    NO_PROXY: "localhost,127.0.0.1,::1,.direct.test,other.test:81",
    NODE_EXTRA_CA_CERTS: join(folder, "ca.pem"),
    NODE_OPTIONS: `--require=${preload}`,
    PLAIN: `http://127.0.0.1:${plainPort}`,
    ...options.env,
  };
  return new Promise((resolve, reject) => {
    execFile(node, [path], { env, timeout: 50_000 }, (error, stdout, stderr) => {
      if (error !== null) reject(new Error(`${error.message}\n${stdout}\n${stderr}`));
      else
        resolve({
          said: stdout
            .split("\n")
            .filter(Boolean)
            .map((line) => JSON.parse(line) as unknown),
          stderr,
        });
    });
  });
}

describe.each(nodes)("programs of %s", (node) => {
  test("use the proxy for http and https, with any agent", async () => {
    const { said: output, stderr } = await run(
      node,
      `const http = require("http"), https = require("https");
      (async () => {
        say(await get(http, "http://example.test/a"));
        say(await get(https, "https://example.test/b"));
        say(await get(https, "https://example.test/c", { agent: new https.Agent({ keepAlive: true }) }));
        say(await get(http, "http://example.test:8080/d", { agent: false }));
        say(await get(http, process.env.PLAIN + "/e"));
        say(await get(https, "https://refused.test/"));
      })();`,
    );
    expect(output).toEqual([
      "plain /a",
      "secure example.test /b 0",
      "secure example.test /c 0",
      "plain /d",
      "plain /e",
      "No connection to refused.test:443: the proxy said 403 Forbidden: not allowed",
    ]);
    expect(proxyRequests).toEqual([
      "CONNECT example.test:80",
      "CONNECT example.test:443",
      "CONNECT example.test:443",
      "CONNECT example.test:8080",
      "CONNECT refused.test:443",
    ]);
    expect(stderr).toBe("");
  });

  test("use the proxy for fetch, and report why it refused", async () => {
    const { said: output, stderr } = await run(
      node,
      `(async () => {
        say(await (await fetch("https://example.test/a", { method: "POST", body: "x".repeat(300000) })).text());
        say(await (await fetch("http://example.test/b")).text());
        say(await (await fetch(process.env.PLAIN + "/c")).text());
        say(await fetch("https://refused.test/").catch((error) => error.cause.message));
      })();`,
    );
    expect(output).toEqual([
      "secure example.test /a 300000",
      "plain /b",
      "plain /c",
      "No connection to refused.test:443: the proxy said 403 Forbidden: not allowed",
    ]);
    expect(proxyRequests).toEqual(["CONNECT example.test:443", "CONNECT example.test:80", "CONNECT refused.test:443"]);
    expect(stderr).toBe("");
  });

  test("use the proxy in ES modules and worker threads", async () => {
    const { said: output } = await run(
      node,
      `import https from "node:https";
      import { isMainThread, Worker } from "node:worker_threads";
      say([isMainThread, await get(https, "https://example.test/a"), await (await fetch("https://example.test/b")).text()]);
      if (isMainThread) new Worker(new URL(import.meta.url));`,
      { name: "program.mjs" },
    );
    expect(output).toEqual([
      [true, "secure example.test /a 0", "secure example.test /b 0"],
      [false, "secure example.test /a 0", "secure example.test /b 0"],
    ]);
    expect(proxyRequests).toHaveLength(4);
  });

  test("respect NO_PROXY, by name, domain and port", async () => {
    const { said: output } = await run(
      node,
      `const http = require("http");
      const { lookup } = { lookup: (name, options, done) => done(new Error("looked up " + name)) };
      (async () => {
        for (const url of ["http://a.direct.test/", "http://other.test:81/", "http://other.test:82/", "http://xdirect.test/"])
          say(await get(http, url, { lookup }));
      })();`,
    );
    expect(output).toEqual(["looked up a.direct.test", "looked up other.test", "plain /", "plain /"]);
  });

  test("behave as usual without a proxy, or with an unsupported one", async () => {
    const program = `say([globalThis.fetch.name, String(fetch).includes("adopt"), Symbol.for("undici.globalDispatcher.1") in globalThis]);`;
    for (const HTTPS_PROXY of ["", "socks5://127.0.0.1:1", "nonsense"]) {
      const { said: output, stderr } = await run(node, program, { env: { HTTPS_PROXY } });
      expect(output).toEqual([["fetch", false, false]]);
      expect(stderr).toBe("");
    }
  });

  test("load nothing that they do not use", async () => {
    const program = `say(process.moduleLoadList.filter((name) => /(_http_agent|undici|_tls_wrap)/.test(name)));`;
    const { said: output } = await run(node, program);
    const without = await run(node, program, { env: { NODE_OPTIONS: "" } });
    expect(output).toEqual(without.said);
  });

  test("keep a dispatcher that they chose", async () => {
    const { said: output } = await run(
      node,
      `const key = Symbol.for("undici.globalDispatcher.1");
      new Headers();
      const { constructor: Agent } = globalThis[key];
      globalThis[key] = new Agent({ connect: (_, done) => done(new Error("the program's own")) });
      fetch("https://example.test/").catch((error) => say(error.cause.message));`,
    );
    expect(output).toEqual(["the program's own"]);
    expect(proxyRequests).toEqual([]);
  });
});
