import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { LocalVerbs } from "../../compose/station.ts";
import { fakeStationParts } from "../../compose/testing.ts";
import type { McpBounds } from "../../contract/mcp-bounds.ts";
import { parsePolicy } from "../../contract/network-text.ts";
import { SandboxSpec } from "../../contract/sandbox.ts";
import { createMcpFace, type McpFace } from "./mcp-server.ts";
import { callTool, textOf } from "./testing.ts";

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

/** As `caisson mcp` serves it, with these options of the person's. */
async function connect(given: { network?: string; reaches?: McpBounds["reaches"]; limits?: object } = {}): Promise<Client> {
  const network = parsePolicy([given.network ?? "none"]);
  const bounds: McpBounds = {
    sandbox: { spec: SandboxSpec.parse({ network, limits: given.limits ?? {} }) },
    run: {},
    most: network,
    choosesTemplate: false,
    keeps: false,
    reaches: given.reaches ?? "own",
  };
  const face = createMcpFace({ station, bounds, scope: "admin", by: "mcp", version: "0", onDefect: (error) => expect(error).toBeNull() });
  faces.push(face);
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: "test", version: "1" });
  await Promise.all([face.server.connect(ours), client.connect(theirs)]);
  return client;
}

const made = async () => (await station.sandboxes.list()).sandboxes.map(({ id }) => id);

describe("what a model may ask for beyond what a person chose", () => {
  test.each([
    ["none", ["github.com"], "github.com is more"],
    ["github.com", ["open"], "open is more"],
    ["GET api.test/v1", ["api.test"], "api.test is more"],
    ["open", ["registries:npm"], "registries:npm is more"],
  ])("with --network %s, nothing of %j", async (network, asked, why) => {
    const client = await connect({ network });
    for (const [tool, args] of [
      ["create_sandbox", {}],
      ["run_agent", { task: "x" }],
    ] as const) {
      const answer = await callTool(client, tool, { ...args, network: asked });
      expect([answer.isError, textOf(answer)], tool).toEqual([true, expect.stringContaining(why)]);
    }
    expect(await made()).toEqual([]);
  });

  test("but less of it", async () => {
    // The fake runtime has no network: what was asked for is refused by it, and not before.
    const client = await connect({ network: "github.com, *.example.org" });
    const none = await callTool(client, "create_sandbox", { network: ["none"] });
    expect(none.structuredContent).toMatchObject({ network: "none" });
    const narrow = await callTool(client, "create_sandbox", { network: ["api.example.org"] });
    expect(textOf(narrow)).not.toContain("at most");
  });

  test("no image, snapshot or repository, and no greater limit", async () => {
    const client = await connect({ limits: { pids: 50 } });
    for (const args of [{ image: "debian" }, { snapshot: "s" }]) {
      expect(textOf(await callTool(client, "create_sandbox", args))).toContain("the person's to choose");
    }
    expect(textOf(await callTool(client, "run_agent", { task: "x", repository: "https://example.org/x" }))).toContain(
      "the person's to choose",
    );
    expect(textOf(await callTool(client, "create_sandbox", { limits: { pids: 51 } }))).toContain("The limit pids may be 50 at most");
    expect(textOf(await callTool(client, "create_sandbox", { limits: { memoryBytes: 2 ** 40 } }))).toContain("memoryBytes may be");
    // The fake runtime enforces no such limit, and is the one that says so.
    expect(textOf(await callTool(client, "create_sandbox", { limits: { pids: 10 } }))).not.toContain("at most");
  });

  test("nothing that others made, unless the person said so", async () => {
    await using other = await station.sandboxes.create({ spec: SandboxSpec.parse({ keep: true }) });
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
      expect([answer.isError, textOf(answer)], tool).toEqual([true, expect.stringContaining("This client made no sandbox")]);
    }
    await expect(client.readResource({ uri: `caisson://sandboxes/${other.id}/files/etc` })).rejects.toThrow(/made no sandbox/);
    expect((await client.listResources()).resources).toEqual([]);
    const all = await connect({ reaches: "all" });
    expect((await callTool(all, "list_sandboxes")).structuredContent).toMatchObject({ sandboxes: [{ sandbox: other.id }] });
  });

  test("sandboxes go with the client, unless they are kept", async () => {
    const client = await connect();
    await callTool(client, "create_sandbox", { name: "gone" });
    const kept = await callTool(client, "create_sandbox", { name: "kept", keep: true });
    expect(await made()).toHaveLength(2);
    await faces.pop()?.[Symbol.asyncDispose]();
    expect(await made()).toEqual([kept.structuredContent?.sandbox]);
  });

  test("long output is cut in its middle", async () => {
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
