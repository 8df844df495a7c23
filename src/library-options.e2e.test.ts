import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { AgentDefinition, createSandbox, runAgent, runCommand } from "./index.ts";

let stateDir = "";
let proxy: Server;
let requestPaths: string[] = [];

beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "caisson-library-"));
  requestPaths = [];
  proxy = createServer((request, response) => {
    requestPaths.push(request.url ?? "");
    response.writeHead(418, { "content-type": "application/json" }).end("{}");
  });
  await new Promise<void>((listening) => proxy.listen(0, "127.0.0.1", listening));
  process.env.OPENAI_API_KEY = "sk-of-the-test";
});

afterEach(async () => {
  delete process.env.OPENAI_API_KEY;
  await new Promise((closed) => proxy.close(closed));
  await rm(stateDir, { recursive: true, force: true });
});

/** The caller's own model provider. */
const ownProvider = () => ({ gateway: { openai: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/v1` } });
const call = [
  "curl -s -o /dev/null -w '%{http_code}' \"$OPENAI_BASE_URL/responses\" -H content-type:application/json",
  '-H "authorization: Bearer $OPENAI_API_KEY" -d \'{"model":"m","input":"hello"}\'',
].join(" ");

test("createSandbox uses the network settings it is given", async () => {
  await using sandbox = await createSandbox({ gateway: { wires: ["openai"] } }, { stateDir, network: ownProvider() });
  const { stdout } = await runCommand(sandbox, { argv: ["sh", "-c", call] });
  expect([String(stdout), requestPaths]).toEqual(["418", ["/v1/responses"]]);
});

test("runAgent uses the network settings it is given", async () => {
  const script = join(stateDir, "script.yaml");
  const turns = [{ calls: [{ tool: "bash", arguments: { command: call } }] }, { say: "Asked.", expect: { news: ["418"] } }];
  await writeFile(script, JSON.stringify({ about: "a scripted model, not a real one", turns }));
  const folder = join(stateDir, "folder");
  await mkdir(folder);
  const agent = AgentDefinition.parse({
    name: "asker",
    system: "Ask.",
    sandbox: { gateway: { wires: ["openai"] } },
    permissions: { bash: "allow" },
  });
  const { reason } = await runAgent({ task: "Ask.", model: `scripted:${script}`, agent, folder, stateDir, network: ownProvider() });
  expect([reason, requestPaths]).toEqual(["done", ["/v1/responses"]]);
});
