import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Going, useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();
const serverFile = join(import.meta.dirname, "..", "support", "preview-server.cjs");
const HTTP = 8017;
const TCP = 8018;

let sandbox = "";
const going: Going[] = [];

interface Opened {
  url: string;
  plainUrl: string;
  token: string;
  listenPort: number;
  listening: boolean;
}

async function ok(...argv: string[]): Promise<string> {
  const { code, text, stderr } = await cli.run(argv);
  expect(code, stderr).toBe(0);
  return text;
}
const inside = (script: string) => ok("exec", "--sandbox", sandbox, "--", "sh", "-c", script);

async function open(...argv: string[]): Promise<Opened & { process: Going }> {
  const process = cli.start(["open", ...argv, "--json"]);
  going.push(process);
  return { ...(JSON.parse(await process.output(/^\{.*\}$/m)) as Opened), process };
}

async function end(process: Going): Promise<number | null> {
  process.child.kill("SIGINT");
  return (await process.ended).code;
}

async function ask(opened: Opened, path: string, options: RequestOptions & { body?: Buffer } = {}): Promise<IncomingMessage> {
  const { body, headers, ...rest } = options;
  const host = new URL(opened.url).host;
  const request = httpRequest({ host: "127.0.0.1", port: opened.listenPort, path, agent: false, headers: { host, ...headers }, ...rest });
  request.end(body);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return response;
}
async function bytesOf(response: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  return Buffer.concat(parts);
}
const hashOf = (data: Buffer) => createHash("sha256").update(data).digest("hex");

beforeAll(async () => {
  sandbox = (await ok("sandbox", "create", "--no-workspace", "--runtime", "oci")).trim();
  await ok("cp", serverFile, `${sandbox}:/workspace/`);
  await inside(`node /workspace/preview-server.cjs ${HTTP} ${TCP} >/dev/null 2>&1 &`);
  for (;;) if ((JSON.parse(await ok("ports", sandbox, "--json")) as unknown[]).length === 2) break;
});
afterAll(async () => {
  for (const process of going) process.child.kill("SIGKILL");
  await cli.run(["sandbox", "rm", "--all", "--yes"]);
  expect(cli.sandboxes()).toEqual([]);
});

describe("caisson open", () => {
  let opened: Awaited<ReturnType<typeof open>>;
  beforeAll(async () => {
    opened = await open(sandbox, String(HTTP));
  });

  test("serves curl by name, as localhost, and hides the token from the program", async () => {
    expect(opened.listening).toBe(true);
    const { stdout } = await promisify(execFile)("curl", ["-s", "--noproxy", "*", `${opened.url}hello`]);
    expect(JSON.parse(stdout)).toMatchObject({ headers: { host: `localhost:${HTTP}` } });
    expect(stdout).not.toContain(opened.token);
  });

  test("rejects requests without the token or with another's", async () => {
    for (const host of ["127.0.0.1", "localhost", `${"a".repeat(32)}.localhost`]) {
      const response = await ask(opened, "/hello", { headers: { host } });
      expect(response.statusCode).toBe(401);
      expect((await bytesOf(response)).toString()).not.toContain(String(HTTP));
    }
    const another = await open(sandbox, String(HTTP));
    expect(another.token).not.toBe(opened.token);
    expect((await ask(opened, "/hello", { headers: { host: new URL(another.url).host } })).statusCode).toBe(401);
    expect(await end(another.process)).toBe(130);
  });

  test("turns the plain URL into a cookie", async () => {
    const jar = join(cli.base(), "cookies");
    const { stdout } = await promisify(execFile)("curl", [
      "-s",
      "--noproxy",
      "*",
      "-L",
      "-c",
      jar,
      opened.plainUrl.replace("/?", "/hello?"),
    ]);
    expect(JSON.parse(stdout)).toMatchObject({ headers: { host: `localhost:${HTTP}` } });
    expect(stdout).not.toContain(opened.token);
  });

  test("passes 50 MB down and up unchanged", async () => {
    const response = await ask(opened, "/download");
    const data = await bytesOf(response);
    expect(data.length).toBe(50 * 1024 * 1024);
    expect(hashOf(data)).toBe(response.headers["x-hash"]);
    const upload = randomBytes(50 * 1024 * 1024);
    expect((await bytesOf(await ask(opened, "/upload", { method: "POST", body: upload }))).toString()).toBe(hashOf(upload));
  });

  test("passes events one by one", async () => {
    const response = await ask(opened, "/events");
    expect(String((await once(response, "data"))[0])).toBe("data: first\n\n");
    const rest = bytesOf(response);
    await bytesOf(await ask(opened, "/next"));
    expect((await rest).toString()).toBe("data: second\n\n");
  });

  test("passes a WebSocket, and closes it and the URL when the command ends", async () => {
    const socket = connect(opened.listenPort, "127.0.0.1");
    socket.on("error", () => {});
    const { host, origin } = new URL(opened.url);
    const key = randomBytes(16).toString("base64");
    const lines = [
      `GET /hmr HTTP/1.1`,
      `Host: ${host}`,
      `Origin: ${origin}`,
      "Connection: Upgrade",
      "Upgrade: websocket",
      `Sec-WebSocket-Key: ${key}`,
    ];
    socket.write(`${lines.join("\r\n")}\r\nSec-WebSocket-Version: 13\r\n\r\n`);
    expect(String((await once(socket, "data"))[0])).toMatch(/^HTTP\/1\.1 101 /);
    for (const text of ["one", "two"]) {
      // Masked with zeros, so the bytes equal the text.
      socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)]));
      expect(String((await once(socket, "data"))[0]).slice(2)).toBe(text);
    }
    const closed = once(socket, "close");
    expect(await end(opened.process)).toBe(130);
    await closed;
    await expect(ask(opened, "/hello")).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });
});

test("open reports that nothing listens yet, and when something does", async () => {
  const early = await open(sandbox, "8019");
  expect(early.listening).toBe(false);
  const response = await ask(early, "/");
  expect(response.statusCode).toBe(502);
  expect((await bytesOf(response)).toString()).toBe(`Nothing listens on port 8019 of the sandbox.\nListening ports: ${HTTP}, ${TCP}.\n`);
  await inside("cd /tmp; python3 -m http.server 8019 --bind 127.0.0.1 >/dev/null 2>&1 & echo $! >/workspace/pid");
  await early.process.output(/"port\.opened".*"port":8019/);
  expect((await ask(early, "/")).statusCode).toBe(200);
  await inside("kill $(cat /workspace/pid)");
  await early.process.output(/"port\.closed".*"port":8019/);
  expect(await end(early.process)).toBe(130);
});

test("forward passes bytes both ways on a port of this machine, and keeps half-closes", async () => {
  const process = cli.start(["forward", sandbox, String(TCP), `${HTTP}`, "--json"]);
  going.push(process);
  await process.output(new RegExp(`"port":${HTTP}.*\\n`));
  const { listenPort, port } = JSON.parse(await process.output(/^\{.*\}$/m)) as { listenPort: number; port: number };
  expect(port).toBe(TCP);
  const socket = connect({ host: "127.0.0.1", port: listenPort, allowHalfOpen: true });
  const data = randomBytes(5_000_000);
  socket.end(data);
  const parts: Buffer[] = [];
  for await (const part of socket) parts.push(part as Buffer);
  expect(hashOf(Buffer.concat(parts))).toBe(hashOf(data));
  expect(await end(process)).toBe(130);
  const late = connect(listenPort, "127.0.0.1");
  await expect(once(late, "connect")).rejects.toMatchObject({ code: "ECONNREFUSED" });
});

test("ports lists listening ports, and reports new and closed ones", async () => {
  expect(await ok("ports", sandbox)).toMatch(new RegExp(`PORT +ADDRESS\\n${HTTP} +127.0.0.1\\n${TCP} +127.0.0.1\\n`));
  const watch = cli.start(["ports", sandbox, "--watch", "--json"]);
  going.push(watch);
  await watch.output(new RegExp(`"port.opened".*"port":${TCP}`));
  await inside("cd /tmp; python3 -m http.server 8020 >/dev/null 2>&1 & echo $! >/workspace/pid");
  const event = JSON.parse(await watch.output(/^.*"port":8020.*$/m)) as unknown;
  expect(event).toMatchObject({ type: "port.opened", version: 1, data: { sandbox, port: 8020, address: "0.0.0.0" } });
  await inside("kill $(cat /workspace/pid)");
  await watch.output(/"port\.closed".*"port":8020/);
  expect(await end(watch)).toBe(130);
});

test("open works for a run's port while the run lives, without disturbing the run", async () => {
  const script = await cli.script({
    turns: [
      { calls: [{ tool: "bash", arguments: { command: "timeout 60 python3 -m http.server 8021; true" } }] },
      { say: "Done.", expect: { news: [] } },
    ],
  });
  const run = cli.start(["run", "serve", "--no-workspace", "--model", script, "--json"]);
  going.push(run);
  const { data } = await run.event("run.created");
  await run.event("tool.started");
  const opened = await open(data.run, "8021");
  if (!opened.listening) await opened.process.output(/"port\.opened".*"port":8021/);
  expect((await ask(opened, "/")).statusCode).toBe(200);
  expect((await cli.run(["stop", data.run])).code).toBe(0);
  await run.ended;
  const { code, stderr } = await opened.process.ended;
  expect(code).toBe(0);
  expect(stderr).toMatch(/the sandbox sb_\w+ no longer exists/);
  expect(await cli.run(["open", data.run, "8021"])).toMatchObject({ code: 125, stderr: expect.stringContaining("has ended") });
});

test("rejects invalid ports before it opens anything", async () => {
  for (const argv of [
    ["open", sandbox, "0"],
    ["open", sandbox, "65536"],
    ["open", sandbox, "http"],
    ["open", sandbox, "80", "--listen", "x"],
    ["forward", sandbox, "1:2:3"],
    ["forward", sandbox, "1:"],
  ]) {
    expect(await cli.run(argv), argv.join(" ")).toMatchObject({ code: 125, stderr: expect.stringContaining("is not a port") });
  }
  expect((await cli.run(["ports", "sb_aaaaaaaaaaaa"])).code).toBe(125);
});
