import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { LocalVerbs } from "../../compose/station.ts";
import { fakeStationParts } from "../../compose/testing-compose.ts";
import type { McpBounds } from "../../contract/api/mcp-bounds.ts";
import { parsePolicy } from "../../contract/network/network-text.ts";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import { createMcpFace, type McpFace } from "./mcp-server.ts";
import { callTool, textOf } from "./testing-mcp.ts";

let base = "";
let station: LocalVerbs;
const faces: McpFace[] = [];
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "caisson-test-mcp-"));
  station = (await fakeStationParts(base)).openStation();
});
afterEach(async () => {
  for (const face of faces.splice(0)) await face[Symbol.asyncDispose]();
  await station[Symbol.asyncDispose]();
  await rm(base, { recursive: true, force: true });
});

/** Connects a client as `caisson mcp` would, with these options of the person. */
async function connect(options: { network?: string; reaches?: McpBounds["reaches"]; limits?: object } = {}): Promise<Client> {
  const network = parsePolicy([options.network ?? "none"]);
  const bounds: McpBounds = {
    sandbox: { spec: SandboxConfig.parse({ network, limits: options.limits ?? {} }) },
    run: {},
    most: network,
    choosesTemplate: false,
    keeps: false,
    reaches: options.reaches ?? "own",
  };
  const face = createMcpFace({ station, bounds, scope: "admin", by: "mcp", version: "0", onDefect: (error) => expect(error).toBeNull() });
  faces.push(face);
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: "test", version: "1" });
  await Promise.all([face.server.connect(ours), client.connect(theirs)]);
  return client;
}

const listSandboxIds = async () => (await station.sandboxes.list()).sandboxes.map(({ id }) => id);

describe("a model under a person's limits", () => {
  test.each([
    ["none", ["github.com"], "github.com exceeds it"],
    ["github.com", ["open"], "open exceeds it"],
    ["GET api.test/v1", ["api.test"], "api.test exceeds it"],
    ["open", ["registries:npm"], "registries:npm exceeds it"],
  ])("with --network %s, is denied %j", async (network, requestedNetwork, why) => {
    const client = await connect({ network });
    for (const [tool, args] of [
      ["create_sandbox", {}],
      ["run_agent", { task: "x" }],
    ] as const) {
      const answer = await callTool(client, tool, { ...args, network: requestedNetwork });
      expect([answer.isError, textOf(answer)], tool).toEqual([true, expect.stringContaining(why)]);
    }
    expect(await listSandboxIds()).toEqual([]);
  });

  test("may narrow its network further", async () => {
    // The fake runtime has no network, so it rejects the request itself, after the limits were checked.
    const client = await connect({ network: "github.com, *.example.org" });
    const none = await callTool(client, "create_sandbox", { network: ["none"] });
    expect(none.structuredContent).toMatchObject({ network: "none" });
    const narrow = await callTool(client, "create_sandbox", { network: ["api.example.org"] });
    expect(textOf(narrow)).not.toContain("at most");
  });

  test("cannot choose an image, snapshot, repository or higher limits", async () => {
    const client = await connect({ limits: { pids: 50 } });
    for (const args of [{ image: "debian" }, { snapshot: "s" }]) {
      expect(textOf(await callTool(client, "create_sandbox", args))).toContain("Only the person may choose");
    }
    expect(textOf(await callTool(client, "run_agent", { task: "x", repository: "https://example.org/x" }))).toContain(
      "Only the person may choose",
    );
    expect(textOf(await callTool(client, "create_sandbox", { limits: { pids: 51 } }))).toContain("The limit pids may be at most 50");
    expect(textOf(await callTool(client, "create_sandbox", { limits: { memoryBytes: 2 ** 40 } }))).toContain("memoryBytes may be");
    // The fake runtime cannot enforce this limit, and rejects it with its own message.
    expect(textOf(await callTool(client, "create_sandbox", { limits: { pids: 10 } }))).not.toContain("at most");
  });

  test("cannot access other clients' sandboxes unless the person allows it", async () => {
    await using other = await station.sandboxes.create({ spec: SandboxConfig.parse({ keep: true }) });
    const client = await connect();
    expect((await callTool(client, "list_sandboxes")).structuredContent).toMatchObject({ sandboxes: [] });
    for (const [tool, args] of [
      ["exec", { sandbox: other.id, command: "true" }],
      ["read_file", { sandbox: other.id, path: "/etc/passwd" }],
      ["remove_sandbox", { sandbox: other.id }],
      ["diff", { of: other.id }],
      ["preview", { sandbox: other.id, port: 80 }],
    ] as const) {
      const answer = await callTool(client, tool, args);
      expect([answer.isError, textOf(answer)], tool).toEqual([true, expect.stringContaining("This client has no sandbox")]);
    }
    await expect(client.readResource({ uri: `caisson://sandboxes/${other.id}/files/etc` })).rejects.toThrow(/has no sandbox/);
    expect((await client.listResources()).resources).toEqual([]);
    const all = await connect({ reaches: "all" });
    expect((await callTool(all, "list_sandboxes")).structuredContent).toMatchObject({ sandboxes: [{ sandbox: other.id }] });
  });

  test("loses its sandboxes when the client disconnects, except kept ones", async () => {
    const client = await connect();
    await callTool(client, "create_sandbox", { name: "gone" });
    const answer = await callTool(client, "create_sandbox", { name: "kept", keep: true });
    expect(await listSandboxIds()).toHaveLength(2);
    await faces.pop()?.[Symbol.asyncDispose]();
    expect(await listSandboxIds()).toEqual([answer.structuredContent?.sandbox]);
  });

  test("gets long output with its middle cut out", async () => {
    const client = await connect();
    await callTool(client, "create_sandbox", { name: "s" });
    const input = `begins ${"é".repeat(5000)} ends`;
    const { structuredContent } = await callTool(client, "exec", { sandbox: "s", argv: ["cat"], input, charactersMax: 100 });
    expect(structuredContent).toMatchObject({
      truncated: true,
      stdout: expect.stringMatching(/^begins é+\n\[… 4912 characters left out …\]\né+ ends$/),
    });
  });
});
